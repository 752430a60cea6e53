/**
 * What the server cannot see by itself: which document is looked at, and where the cursor was put.
 *
 * Rule: one notification per rest of the cursor, none while typing, since requests tell the place.
 */

import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";

const REST_MS = 120;

function place(client: LanguageClient, editor: vscode.TextEditor) {
  return {
    textDocument: client.code2ProtocolConverter.asTextDocumentIdentifier(editor.document),
    position: client.code2ProtocolConverter.asPosition(editor.selection.active),
  };
}

/** Start telling. The client may be undefined while no server runs. */
export function track(current: () => LanguageClient | undefined): vscode.Disposable {
  let timer: NodeJS.Timeout | undefined;
  const tell = (method: string, editor: vscode.TextEditor | undefined) => {
    const client = current();
    if (client?.isRunning() && editor) {
      void client.sendNotification(method, place(client, editor));
    }
  };
  const focus = vscode.window.onDidChangeActiveTextEditor((editor) => tell("textDocument/didFocus", editor));
  const window = vscode.window.onDidChangeWindowState((state) => {
    if (state.focused) {
      tell("textDocument/didFocus", vscode.window.activeTextEditor);
    }
  });
  const moved = vscode.window.onDidChangeTextEditorSelection((event) => {
    clearTimeout(timer);
    if (event.kind !== vscode.TextEditorSelectionChangeKind.Mouse && event.kind !== vscode.TextEditorSelectionChangeKind.Command) {
      return; // typing; arrow keys come as Keyboard too, and rest in the request that follows
    }
    timer = setTimeout(() => tell("lsp-complete/didMoveCursor", event.textEditor), REST_MS);
  });
  return vscode.Disposable.from(focus, window, moved, { dispose: () => clearTimeout(timer) });
}
