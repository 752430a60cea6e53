/**
 * Finding the server's command, and offering to install it.
 *
 * Rule: nothing is installed without a click, and then in a terminal where the user sees what is run.
 */

import * as fs from "fs";
import * as os from "os";
import * as path from "path";
import * as vscode from "vscode";
import { SECTION } from "./settings";

const NAME = process.platform === "win32" ? "lsp-complete.exe" : "lsp-complete";

function usable(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

/** Folders where pipx, uv and pip put commands, after those of the PATH. */
function folders(): string[] {
  const onPath = (process.env.PATH ?? "").split(path.delimiter).filter((p) => path.isAbsolute(p));
  return [...onPath, path.join(os.homedir(), ".local", "bin"), path.join(os.homedir(), ".local", "share", "uv", "tools", "lsp-complete", "bin")];
}

/** The command: the setting's, else the first that is found; undefined if there is none. */
export function find(): string | undefined {
  const chosen = vscode.workspace.getConfiguration(SECTION).get<string>("server.command", "").trim();
  if (chosen) {
    const file = chosen.startsWith("~/") ? path.join(os.homedir(), chosen.slice(2)) : chosen;
    return usable(file) ? file : undefined;
  }
  return folders().map((folder) => path.join(folder, NAME)).find(usable);
}

/** Say that there is no server and offer ways to get one. Gives true if it makes sense to look again; a changed setting is heard of anyway. */
export async function offer(): Promise<boolean> {
  const pipx = "Install a clone with pipx…";
  const uv = "Install a clone with uv…";
  const choose = "Choose the command…";
  const picked = await vscode.window.showWarningMessage(
    "lsp-complete: the server is not on this machine. Install it?",
    pipx,
    uv,
    choose,
  );
  if (picked === choose) {
    const files = await vscode.window.showOpenDialog({ title: "The command lsp-complete", canSelectMany: false });
    if (files?.[0]) {
      const configuration = vscode.workspace.getConfiguration(SECTION);
      await configuration.update("server.command", files[0].fsPath, vscode.ConfigurationTarget.Global);
    }
    return false;
  }
  if (picked === undefined) {
    return false;
  }
  // From source only: the name is in no package index, and whoever takes it there must not be installed.
  const clones = await vscode.window.showOpenDialog({
    title: "The folder with the source of lsp-complete (a clone of its repository)",
    canSelectFiles: false,
    canSelectFolders: true,
  });
  if (!clones?.[0]) {
    return false;
  }
  const terminal = vscode.window.createTerminal({ name: "lsp-complete", cwd: clones[0] });
  terminal.show();
  terminal.sendText(picked === pipx ? "pipx install ." : "uv tool install .");
  const done = "Start it";
  return (await vscode.window.showInformationMessage("lsp-complete: when the terminal is done, start the server.", done)) === done;
}
