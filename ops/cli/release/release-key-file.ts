/**
 * Release signing keys as files: Ed25519 private keys in PKCS#8 PEM (RFC 8410), optionally with a passphrase. Only their owner
 * may read them, and existing ones are never overwritten.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { UsageError } from "#core/errors";
import { publicKey } from "#protocol/identity";
import { rawPublicKey } from "#protocol/release-envelope";

/** Limit on the size of a PEM file, which has some 200 bytes. */
const maxKeyFileBytes = 16_384;

/** Creates a key and returns its public half as raw bytes in base64url. */
export function writeNewKey(file: string, passphrase: string | null): string {
  const privateKey = newKey();
  const cipher = passphrase === null ? {} : { cipher: "aes-256-cbc", passphrase };
  const pem = privateKey.export({ type: "pkcs8", format: "pem", ...cipher });
  try {
    writeFileSync(file, pem, { mode: 0o600, flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw unusable(file, error);
    throw new UsageError(`${file} already exists, and a key is never overwritten: name another file`);
  }
  return rawPublicKey(privateKey);
}

/** Retries, because a public half that begins with a dash would be parsed as an option. */
function newKey(): KeyObject {
  for (;;) {
    const { privateKey } = generateKeyPairSync("ed25519");
    if (!rawPublicKey(privateKey).startsWith("-")) return privateKey;
  }
}

/** `passphraseFile` contains the passphrase. If it is null and the key has a passphrase, the user is asked for it. */
export async function readSigningKey(file: string, passphraseFile: string | null): Promise<KeyObject> {
  const pem = readSmallFile(file);
  if ((statSync(file).mode & 0o077) !== 0) {
    throw new UsageError(`others than its owner can read ${file}: chmod 600 ${file}`);
  }
  const isLocked = pem.includes("BEGIN ENCRYPTED PRIVATE KEY");
  const passphrase = isLocked ? await passphraseOf(file, passphraseFile) : undefined;
  const key = parseKey(file, () => createPrivateKey({ key: pem, passphrase }));
  if (key.asymmetricKeyType === "ed25519") return key;
  throw new UsageError(
    `${file} holds a key of type ${key.asymmetricKeyType}; releases are signed with Ed25519`,
  );
}

/** Accepts a public key (43 characters of base64url) or its PEM file. */
export function readPublicKey(text: string): string {
  if (publicKey.safeParse(text).success) return text;
  const pem = readSmallFile(text);
  if (pem.includes("PRIVATE KEY")) {
    throw new UsageError(
      `${text} holds a private key: give the public one, which nearcrawl release keygen printed`,
    );
  }
  return parseKey(text, () => rawPublicKey(createPublicKey(pem)));
}

export function readPassphrase(file: string): string {
  const passphrase = readSmallFile(file).split(/\r?\n/)[0] ?? "";
  if (passphrase === "")
    throw new UsageError(`${file}: its first line is empty; the passphrase belongs there`);
  return passphrase;
}

async function passphraseOf(file: string, passphraseFile: string | null): Promise<string> {
  return passphraseFile === null
    ? await askPassphrase(`Passphrase of ${file}: `)
    : readPassphrase(passphraseFile);
}

function parseKey<Key>(file: string, parse: () => Key): Key {
  try {
    return parse();
  } catch (error) {
    throw new UsageError(`${file} is not a key that can be read, or the passphrase is wrong`, {
      cause: error,
    });
  }
}

const readSmallFile = (file: string) => readBounded(file, maxKeyFileBytes).toString("utf8");

/** Throws a UsageError that names the file when it is missing, unreadable or too large. */
export function readBounded(file: string, most: number): Buffer {
  try {
    if (statSync(file).size > most) throw new Error(`it has more than ${most} bytes`);
    return readFileSync(file);
  } catch (error) {
    throw unusable(file, error);
  }
}

export function unusable(file: string, error: unknown): UsageError {
  return new UsageError(`${file}: ${error instanceof Error ? error.message : String(error)}`, {
    cause: error,
  });
}

// Asks for a passphrase on the terminal without echo.

/** Throws a UsageError when there is no terminal. */
async function askPassphrase(question: string): Promise<string> {
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

/** Asks twice, to catch typing errors. */
export async function askNewPassphrase(): Promise<string> {
  const first = await askPassphrase("Passphrase for the new key: ");
  if (first === "")
    throw new UsageError("an empty passphrase protects nothing: leave --passphrase out instead");
  if (first !== (await askPassphrase("Once more: "))) throw new UsageError("the two were not the same");
  return first;
}
