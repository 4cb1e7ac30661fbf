/** A partner's WARC archive, wired together from the crawler's settings. */

import type { ExchangeRecorder } from "../fetch/site-client.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import { WarcRecorder, writeWarcRecord } from "./recorder.ts";
import { WarcFiles } from "./warc-files.ts";

export interface Warc {
  readonly recorder: ExchangeRecorder;
  /** Why nothing is written any more, in words; empty while something is. */
  stopped(): string;
  /** Bytes of all its files. */
  bytes(): number;
  close(): Promise<void>;
}

/** Null when the settings ask for none. Throws ConfigError when the folder cannot be written. */
export function openWarc(
  { warc, name }: Pick<CrawlerConfig, "warc" | "name">,
  { software, userAgent }: { readonly software: string; readonly userAgent: () => string },
): Warc | null {
  if (warc === null) return null;
  const now = () => new Date();
  const firstRecord = (file: string) => warcinfo({ file, software, userAgent: userAgent(), date: now() });
  const files = new WarcFiles({ ...warc, name, firstRecord, now });
  return {
    recorder: new WarcRecorder(files, now),
    stopped: () => files.stopped,
    bytes: () => files.bytes,
    close: () => files.close(),
  };
}

/** WARC/1.1 section 6.2: what wrote the file, and by which rules. */
function warcinfo(about: {
  readonly file: string;
  readonly software: string;
  readonly userAgent: string;
  readonly date: Date;
}): Buffer {
  const lines = [
    `software: ${about.software}`,
    "format: WARC File Format 1.1",
    "conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
    "robots: obey",
    `http-header-user-agent: ${about.userAgent}`,
  ];
  return writeWarcRecord({
    type: "warcinfo",
    date: about.date,
    contentType: "application/warc-fields",
    fields: { "WARC-Filename": about.file },
    block: Buffer.from(`${lines.join("\r\n")}\r\n`),
    payloadAt: null,
  });
}
