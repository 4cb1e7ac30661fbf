/**
 * Is a downloaded file what its source publishes? Read to its end once, unpacking, so that a cut gzip, a damaged
 * ZIP or a web page in place of data never gets into the cache. Gives the file's digest on the way.
 */
import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { SourceFileError } from "#core/errors";
import { readBootstrap } from "../rdap/bootstrap.ts";
import { openSource } from "../read/open-source.ts";
import type { SourceFormat } from "../read/sniff.ts";
import { DownloadFailure } from "./download-failure.ts";
import type { DownloadKind } from "./download-source.ts";

const formatsOf: Readonly<Record<Exclude<DownloadKind, "rdap-bootstrap">, readonly SourceFormat[]>> = {
  "iana-registry": ["iana-xml"],
  statistics: ["delegated"],
  "rpsl-split": ["rpsl"],
  "whole-database": ["rpsl"],
  "arin-bulk": ["arin-xml", "rpsl"],
};
const maxBootstrapBytes = 16 * 2 ** 20;

/** SHA-256 of the file, hex. Throws a DownloadFailure that says what it is instead. */
export async function checkContent(path: string, kind: DownloadKind): Promise<string> {
  try {
    return kind === "rdap-bootstrap" ? await checkBootstrap(path) : await checkRegistryFile(path, kind);
  } catch (error) {
    if (!(error instanceof SourceFileError)) throw error;
    const place = `${path}${error.line === null ? "" : `:${error.line}`}: `;
    throw new DownloadFailure("never", `not taken: ${error.message.replace(place, "")}`, { cause: error });
  }
}

async function checkRegistryFile(
  path: string,
  kind: Exclude<DownloadKind, "rdap-bootstrap">,
): Promise<string> {
  const source = await openSource(path, () => {});
  for await (const { format, chunks, file } of source.parts) {
    if (!formatsOf[kind].includes(format)) {
      throw new SourceFileError(file, null, `it is ${format} data, where ${kind} is expected`);
    }
    for await (const _ of chunks);
  }
  return await source.sha256();
}

async function checkBootstrap(path: string): Promise<string> {
  const { size } = await stat(path);
  if (size > maxBootstrapBytes) throw new SourceFileError(path, null, "too large for a bootstrap file");
  const bytes = await readFile(path);
  readBootstrap(path, bytes.toString("utf8"));
  return createHash("sha256").update(bytes).digest("hex");
}
