/**
 * What was typed while the engine started gets its suggestion once that is ready: VS Code asks at keys only.
 *
 * Rule: it is asked as a key would ask. A request by the user's own command gets several candidates, which cost more.
 */

import * as vscode from "vscode";

export class Late implements vscode.Disposable {
  private typed: vscode.TextDocument | undefined;
  private asking = false;
  private readonly listener: vscode.Disposable;

  /** ready: whether requests are answered now. */
  constructor(ready: () => boolean) {
    this.listener = vscode.workspace.onDidChangeTextDocument((event) => {
      if (event.contentChanges.length && event.document === vscode.window.activeTextEditor?.document) {
        this.typed = ready() ? undefined : event.document;
      }
    });
  }

  /** The engine is ready. */
  async ready(): Promise<void> {
    const typed = this.typed;
    this.typed = undefined;
    if (!typed || vscode.window.activeTextEditor?.document !== typed) {
      return;
    }
    this.asking = true;
    try {
      await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
    } finally {
      this.asking = false;
    }
  }

  /** The context that a request goes out with. */
  context(given: vscode.InlineCompletionContext): vscode.InlineCompletionContext {
    return this.asking ? { ...given, triggerKind: vscode.InlineCompletionTriggerKind.Automatic } : given;
  }

  dispose(): void {
    this.listener.dispose();
  }
}
