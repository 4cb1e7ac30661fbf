/**
 * Where HOME/control.sock is for the system: a socket's path may have 103 bytes (sun_path of macOS; Linux has 107).
 * Where the folder is too deep for that, Linux reaches it through an open descriptor of it, /proc/self/fd/N; other
 * systems cannot, and the caller says so.
 */
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";

const mostPathBytes = 103;
const fileName = "control.sock";

export interface ControlPath {
  /** To listen on or to connect to, until `close`; null: this system cannot, the path is too long. */
  readonly path: string | null;
  close(): void;
}

export const controlFile = (home: string) => join(home, fileName);

/** Throws the system's error when the folder cannot be opened. */
export function openControlPath(home: string): ControlPath {
  const plain = controlFile(home);
  if (Buffer.byteLength(plain) <= mostPathBytes) return { path: plain, close: () => {} };
  if (process.platform !== "linux") return { path: null, close: () => {} };
  const folder = openSync(home, "r");
  return { path: `/proc/self/fd/${folder}/${fileName}`, close: () => closeSync(folder) };
}
