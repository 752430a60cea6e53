/**
 * The dashboard: the server's own command, run beside the editor while the window is open, and its page in the browser.
 *
 * Rule: it ends with the window, also when the window dies: it holds on to the pipe that is its standard input.
 */

import { spawn, type ChildProcess } from "child_process";
import * as vscode from "vscode";

const LIMIT_MS = 20_000;

export class Dashboard implements vscode.Disposable {
  private child: ChildProcess | undefined;
  private address: Promise<string> | undefined;

  /** Show the page, started if need be. */
  async show(command: string): Promise<void> {
    try {
      this.address ??= this.start(command);
      const address = vscode.Uri.parse(await this.address, true);
      await vscode.env.openExternal(await vscode.env.asExternalUri(address));
    } catch (error) {
      this.dispose();
      void vscode.window.showErrorMessage(`lsp-complete: the dashboard could not be started (${(error as Error).message})`);
    }
  }

  private start(command: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const child = spawn(command, ["dashboard", "--until-eof"], { stdio: ["pipe", "pipe", "pipe"] });
      const late = setTimeout(() => reject(new Error("it does not answer")), LIMIT_MS);
      let said = "";
      child.stdout.on("data", (data: Buffer) => {
        said += data.toString();
        const found = /http:\/\/127\.0\.0\.1:\d+\/\S+/.exec(said);
        if (found) {
          clearTimeout(late);
          resolve(found[0]);
        }
      });
      child.stderr.on("data", (data: Buffer) => (said += data.toString()));
      child.on("error", reject);
      child.on("close", () => {
        clearTimeout(late);
        if (this.child === child) {
          this.child = undefined;
          this.address = undefined;
        }
        reject(new Error(said.trim().split("\n").pop() || "it ended"));
      });
      this.child = child;
    });
  }

  dispose(): void {
    const child = this.child;
    this.child = undefined;
    this.address = undefined;
    child?.stdin?.end();
  }
}
