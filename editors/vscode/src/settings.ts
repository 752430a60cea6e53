/**
 * Settings on their way to the server.
 *
 * Rule: only what the user set is sent. A default of VS Code's would otherwise win over the user's own lsp-complete.toml.
 */

import * as vscode from "vscode";

export const SECTION = "lsp-complete";

/** Settings of the extension itself; the server does not know them. */
const OWN = new Set(["server.command", "showStatus"]);

export type Settings = { [name: string]: unknown };

/** Dotted names as nested tables: `suggest.level` becomes `{suggest: {level: …}}`. */
export function nested(flat: Settings): Settings {
  const out: Settings = {};
  for (const [name, value] of Object.entries(flat)) {
    const parts = name.split(".");
    const last = parts.pop()!;
    let table = out;
    for (const part of parts) {
      table = (table[part] ??= {}) as Settings;
    }
    table[last] = value;
  }
  return out;
}

/** What the user set, in the user's or the workspace's settings, for the server. */
export function forServer(properties: Iterable<string>): Settings {
  const configuration = vscode.workspace.getConfiguration(SECTION);
  const flat: Settings = {};
  for (const full of properties) {
    const name = full.slice(SECTION.length + 1);
    const seen = OWN.has(name) ? undefined : configuration.inspect(name);
    const value = seen?.workspaceFolderValue ?? seen?.workspaceValue ?? seen?.globalValue;
    if (value !== undefined) {
      flat[name] = value;
    }
  }
  flat["suggest.surface"] ??= "ghost"; // a menu beside the ghost text would say everything twice
  return nested(flat);
}

/** The names that this extension declares, from its own package.json. */
export function declared(context: vscode.ExtensionContext): string[] {
  return Object.keys(context.extension.packageJSON.contributes.configuration.properties);
}
