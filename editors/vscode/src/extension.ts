/**
 * The extension: one language client for all folders, a status-bar item with a menu, and commands.
 *
 * Rule: commands here are named lspComplete.*; those named lsp-complete.* are the server's, which the client library registers.
 *
 * Strategy: ghost text comes from the client library's inline completion; accepting a word or a line is VS Code's own. This file joins the parts.
 */

import * as vscode from "vscode";
import { CloseAction, ErrorAction, LanguageClient, RevealOutputChannelOn, State as ClientState, type LanguageClientOptions, type ServerOptions } from "vscode-languageclient/node";
import { Dashboard } from "./dashboard";
import { find, offer } from "./find";
import { Late } from "./late";
import { pick } from "./models";
import { declared, forServer, SECTION } from "./settings";
import { type ServerStatus, StatusItem, stateOf } from "./status";
import { track } from "./track";

const MOST_RESTARTS = 4;
const SELECTOR = [{ scheme: "file" }, { scheme: "untitled" }, { scheme: "vscode-notebook-cell" }];

let client: LanguageClient | undefined;
let command: string | undefined;
let status: StatusItem;
let names: string[] = [];
let paused = false;
let late: Late;
const dashboard = new Dashboard();

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  names = declared(context);
  status = new StatusItem();
  late = new Late(() => status.current === "ready");
  context.subscriptions.push(status, dashboard, late, track(() => client));
  const commands: [string, (...words: never[]) => unknown][] = [
    ["menu", menu],
    ["restart", restart],
    ["restartEngine", () => execute("lsp-complete.restartEngine")],
    ["pause", () => pause(true)],
    ["resume", () => pause(false)],
    ["toggleLanguage", toggleLanguage],
    ["models", models],
    ["statistics", statistics],
    ["dashboard", () => (command ? dashboard.show(command) : start(true))],
    ["log", () => client?.outputChannel.show()],
    ["trigger", () => vscode.commands.executeCommand("editor.action.inlineSuggest.trigger")],
  ];
  for (const [name, run] of commands) {
    context.subscriptions.push(vscode.commands.registerCommand(`lspComplete.${name}`, run));
  }
  context.subscriptions.push(vscode.workspace.onDidChangeConfiguration(configured));
  await start(false);
}

export async function deactivate(): Promise<void> {
  await client?.stop(2000);
}

async function start(asked: boolean): Promise<void> {
  command = find();
  if (!command) {
    status.set("error", "the server is not on this machine");
    if ((await offer()) && !client) {
      await start(true); // unless a setting was put right meanwhile
    }
    return;
  }
  status.set("starting", command);
  client = new LanguageClient(SECTION, "lsp-complete", serverOptions(command), clientOptions());
  client.onNotification("didChangeStatus", (told: ServerStatus) => {
    if (!paused) {
      status.set(stateOf(told), told.message);
      if (status.current === "ready") {
        void late.ready();
      }
    }
  });
  client.onDidChangeState((event) => {
    if (event.newState === ClientState.Stopped) {
      status.set("off", "the server has stopped");
    } else if (event.newState === ClientState.Running && paused) {
      void execute("lsp-complete.pause"); // a server that was started again knows nothing of it
      status.set("paused");
    } else if (event.newState === ClientState.Running) {
      status.set(vscode.window.visibleTextEditors.length ? "working" : "ready"); // the engine starts with the first file
    }
  });
  try {
    await client.start();
  } catch (error) {
    status.set("error", (error as Error).message);
    if (asked) {
      void vscode.window.showErrorMessage(`lsp-complete: the server could not be started (${(error as Error).message})`);
    }
  }
}

function serverOptions(program: string): ServerOptions {
  return { command: program, args: [], options: { cwd: undefined } };
}

function clientOptions(): LanguageClientOptions {
  let failures = 0;
  return {
    documentSelector: SELECTOR,
    initializationOptions: { statusNotifications: true, settings: forServer(names) },
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    markdown: { isTrusted: false },
    middleware: {
      provideInlineCompletionItems: (document, position, context, token, next) => next(document, position, late.context(context), token),
    },
    errorHandler: {
      error: () => ({ action: ErrorAction.Continue }),
      closed: () => {
        failures += 1;
        const again = failures <= MOST_RESTARTS;
        status.set(again ? "restarting" : "error", again ? "the server ended and is started again" : "the server ended too often; see the log");
        return { action: again ? CloseAction.Restart : CloseAction.DoNotRestart, handled: true };
      },
    },
  };
}

async function restart(): Promise<void> {
  const old = client;
  client = undefined;
  paused = false;
  await old?.dispose(2000).catch(() => undefined);
  await start(true);
}

async function configured(event: vscode.ConfigurationChangeEvent): Promise<void> {
  if (!event.affectsConfiguration(SECTION)) {
    return;
  }
  if (event.affectsConfiguration(`${SECTION}.server.command`)) {
    await restart();
  } else if (client?.isRunning()) {
    await client.sendNotification("workspace/didChangeConfiguration", { settings: forServer(names) });
  }
}

async function execute(name: string): Promise<unknown> {
  if (!client?.isRunning()) {
    void vscode.window.showWarningMessage("lsp-complete: the server does not run");
    return undefined;
  }
  return client.sendRequest("workspace/executeCommand", { command: name, arguments: [] });
}

async function pause(on: boolean): Promise<void> {
  paused = on;
  await execute(on ? "lsp-complete.pause" : "lsp-complete.resume");
  if (on) {
    await vscode.commands.executeCommand("editor.action.inlineSuggest.hide");
  }
  status.set(on ? "paused" : "ready");
}

/** Suggestions on or off for the language of the active editor, in the user's settings. */
async function toggleLanguage(): Promise<void> {
  const language = vscode.window.activeTextEditor?.document.languageId;
  if (!language) {
    return;
  }
  const configuration = vscode.workspace.getConfiguration(SECTION);
  const languages = { ...(configuration.inspect<Record<string, boolean>>("languages")?.globalValue ?? {}) };
  const off = languages[language] === false;
  if (off) {
    delete languages[language];
  } else {
    languages[language] = false;
  }
  await configuration.update("languages", Object.keys(languages).length ? languages : undefined, vscode.ConfigurationTarget.Global);
  void vscode.window.setStatusBarMessage(`lsp-complete: ${off ? "on" : "off"} for ${language}`, 3000);
}

async function models(): Promise<void> {
  if (!command) {
    await start(true); // says that there is no server, and offers it
  } else if (await pick(command)) {
    await execute("lsp-complete.restartEngine");
  }
}

async function statistics(): Promise<void> {
  const found = await execute("lsp-complete.stats");
  if (found !== undefined) {
    const document = await vscode.workspace.openTextDocument({ language: "json", content: JSON.stringify(found, null, 2) });
    await vscode.window.showTextDocument(document, { preview: true });
  }
}

async function menu(): Promise<void> {
  const language = vscode.window.activeTextEditor?.document.languageId;
  const off = vscode.workspace.getConfiguration(SECTION).get<Record<string, boolean>>("languages", {});
  const entries: (vscode.QuickPickItem & { run: string })[] = [
    paused ? { label: "$(play) Resume", run: "lspComplete.resume" } : { label: "$(debug-pause) Pause", run: "lspComplete.pause" },
    ...(language ? [{ label: `$(circle-slash) Turn ${off[language] === false ? "on" : "off"} for ${language}`, run: "lspComplete.toggleLanguage" }] : []),
    { label: "$(cloud-download) Models…", run: "lspComplete.models" },
    { label: "$(graph) Statistics", run: "lspComplete.statistics" },
    { label: "$(dashboard) Dashboard", detail: "latency by stage, hit rates, slots, recordings; in the browser", run: "lspComplete.dashboard" },
    { label: "$(output) Log", run: "lspComplete.log" },
    { label: "$(refresh) Restart the engine", run: "lspComplete.restartEngine" },
    { label: "$(debug-restart) Restart the server", run: "lspComplete.restart" },
    { label: "$(settings-gear) Settings", run: "workbench.action.openSettings" },
  ];
  const picked = await vscode.window.showQuickPick(entries, { title: `lsp-complete: ${status.current}` });
  if (picked) {
    const words = picked.run === "workbench.action.openSettings" ? [SECTION] : [];
    await vscode.commands.executeCommand(picked.run, ...words);
  }
}
