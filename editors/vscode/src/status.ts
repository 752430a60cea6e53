/** The item in the status bar: what the server is doing, in a word, and why in the tooltip. */

import * as vscode from "vscode";

export type State = "starting" | "ready" | "working" | "no model" | "restarting" | "error" | "paused" | "off";

/** As the server's `didChangeStatus` notification has it. */
export interface ServerStatus {
  kind: string;
  message: string;
  busy: boolean;
}

/** The state that a notification means. */
export function stateOf(status: ServerStatus): State {
  if (status.kind === "Error") {
    return /model/i.test(status.message) ? "no model" : "error";
  }
  if (status.kind === "Warning") {
    return "restarting";
  }
  return status.busy ? "working" : "ready";
}

const ICONS: Record<State, string> = {
  starting: "$(loading~spin)",
  ready: "$(sparkle)",
  working: "$(loading~spin)",
  "no model": "$(cloud-download)",
  restarting: "$(sync~spin)",
  error: "$(error)",
  paused: "$(debug-pause)",
  off: "$(circle-slash)",
};

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("lsp-complete.status", vscode.StatusBarAlignment.Right, 100);
  private state: State = "starting";
  private message = "";

  constructor() {
    this.item.name = "lsp-complete";
    this.item.command = "lspComplete.menu";
    this.draw();
    this.item.show();
  }

  get current(): State {
    return this.state;
  }

  set(state: State, message = ""): void {
    this.state = state;
    this.message = message;
    this.draw();
  }

  private draw(): void {
    this.item.text = `${ICONS[this.state]} lsp-complete`;
    const detail = this.message ? `\n${this.message}` : "";
    this.item.tooltip = `lsp-complete: ${this.state}${detail}\nClick for the menu`;
    const bad = this.state === "error" || this.state === "no model";
    this.item.backgroundColor = bad ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    this.item.accessibilityInformation = { label: `lsp-complete: ${this.state}` };
  }

  dispose(): void {
    this.item.dispose();
  }
}
