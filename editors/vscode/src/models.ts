/** Models: what is here, and getting one, with its progress. Runs the server's own command; nothing else is fetched. */

import { execFile, spawn } from "child_process";
import * as vscode from "vscode";

interface Model extends vscode.QuickPickItem {
  model: string;
  here: boolean;
}

/** An entry of `lsp-complete models list --json`. */
interface Entry {
  name: string;
  title: string;
  licence: string;
  size: number;
  path: string | null;
}

function run(command: string, words: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(command, words, { timeout: 30_000 }, (error, out, err) => (error ? reject(new Error(err.trim() || error.message)) : resolve(out)));
  });
}

function item(entry: Entry): Model {
  const here = Boolean(entry.path);
  return {
    label: `${here ? "$(check)" : "$(cloud-download)"} ${entry.title}`,
    description: `${(entry.size / 1e9).toFixed(1)} GB, ${entry.licence}`,
    detail: here ? "on this machine" : "click to download",
    model: entry.name,
    here,
  };
}

/** Get a model; its last line of output is the progress. */
export function pull(command: string, model: string): Thenable<boolean> {
  const options = { location: vscode.ProgressLocation.Notification, title: `Getting ${model}`, cancellable: true };
  return vscode.window.withProgress(options, (progress, cancelled) => {
    return new Promise<boolean>((resolve) => {
      const child = spawn(command, ["models", "pull", model], { stdio: ["ignore", "pipe", "pipe"] });
      let last = "";
      const heard = (data: Buffer) => {
        last = data.toString().split(/[\r\n]+/).filter(Boolean).pop() ?? last;
        progress.report({ message: last.trim().slice(0, 120) });
      };
      child.stdout.on("data", heard);
      child.stderr.on("data", heard);
      cancelled.onCancellationRequested(() => child.kill("SIGINT"));
      child.on("error", () => resolve(false));
      child.on("close", (code) => {
        if (code !== 0 && !cancelled.isCancellationRequested) {
          void vscode.window.showErrorMessage(`lsp-complete: ${last || `the download ended with ${code}`}`);
        }
        resolve(code === 0);
      });
    });
  });
}

/** Let the user pick a model. Gives true if a new one is here. */
export async function pick(command: string): Promise<boolean> {
  let items: Model[];
  try {
    items = (JSON.parse(await run(command, ["models", "list", "--json"])) as Entry[]).map(item);
  } catch (error) {
    void vscode.window.showErrorMessage(`lsp-complete: ${(error as Error).message}`);
    return false;
  }
  const picked = await vscode.window.showQuickPick(items, { title: "Models", placeHolder: "The best one here that is fast enough is used by itself" });
  if (!picked) {
    return false;
  }
  if (!picked.here) {
    return pull(command, picked.model);
  }
  const open = "Open my lsp-complete.toml";
  const said = await vscode.window.showInformationMessage(
    `To use ${picked.model} always, write model = "${picked.model}" into your lsp-complete.toml.`,
    open,
  );
  if (said === open) {
    const file = vscode.Uri.file((await run(command, ["config", "--path"])).trim());
    await vscode.workspace.fs.stat(file).then(undefined, () => vscode.workspace.fs.writeFile(file, new Uint8Array()));
    await vscode.window.showTextDocument(file);
  }
  return false;
}
