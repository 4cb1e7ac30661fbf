/** Asks for a passphrase at the terminal, without showing it. */
import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { UsageError } from "#core/errors";

/** Throws UsageError where nobody sits at a terminal. */
export async function askPassphrase(question: string): Promise<string> {
  if (!process.stdin.isTTY) {
    throw new UsageError(
      "a passphrase is needed and there is no terminal to ask at: name its file with --passphrase-file",
    );
  }
  const silent = new Writable({ write: (_piece, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: silent, terminal: true });
  process.stderr.write(question);
  try {
    return await new Promise<string>((resolve, reject) => {
      terminal.once("line", resolve);
      terminal.once("close", () => reject(new UsageError("no passphrase was given")));
    });
  } finally {
    terminal.close();
    process.stderr.write("\n");
  }
}

/** Twice, so that a slip of the finger locks nobody out. */
export async function askNewPassphrase(): Promise<string> {
  const first = await askPassphrase("Passphrase for the new key: ");
  if (first === "")
    throw new UsageError("an empty passphrase protects nothing: leave --passphrase out instead");
  if (first !== (await askPassphrase("Once more: "))) throw new UsageError("the two were not the same");
  return first;
}
