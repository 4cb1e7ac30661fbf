/** A key or password that stands in a file of its own, so that it is neither in settings nor on a command line. */
import { readFile } from "node:fs/promises";
import { ConfigError } from "#core/errors";

const maxSecretLength = 4096;

/** The file's one line. Throws a ConfigError that names the file and never its content. */
export async function readSecret(file: string): Promise<string> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new ConfigError([`${file}: the secret cannot be read (${error.code ?? "unknown fault"})`]);
  });
  const secret = text.trim();
  if (secret === "" || secret.length > maxSecretLength || /[^\x20-\x7e]/.test(secret)) {
    throw new ConfigError([`${file}: must hold one line of printable ASCII`]);
  }
  return secret;
}
