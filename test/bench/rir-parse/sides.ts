/**
 * The sides of the parse benchmark: our readers, plain ways to do the same, and a scanner that looks at every byte
 * and does nothing else, which is what a reader in JavaScript can at most reach.
 */
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { XMLParser } from "fast-xml-parser";
import type { OpenReader, RegistryRecord } from "#rir-import/formats/record";
import { readSources } from "#rir-import/read/read-sources";

/** Reads the bytes and gives the number of records, so that the sides can be seen to do the same work. */
export type Work = () => Promise<number>;
type Chunks = readonly Buffer[];

/** Our reader, and a sink that takes every field of every record, as the tree does. */
export const ours = (open: OpenReader, chunks: Chunks) => async (): Promise<number> => {
  let records = 0;
  let letters = 0;
  const nothing = () => {};
  const reader = open("bench", {
    record: (record) => {
      records++;
      letters += lettersOf(record);
    },
    ignore: nothing,
    malformed: nothing,
    warn: nothing,
    facts: nothing,
  });
  for (const chunk of chunks) reader.push(chunk);
  reader.end();
  if (letters === 0) throw new Error("nothing was read");
  return records;
};

function lettersOf(record: RegistryRecord): number {
  const { name, country, registry } = record;
  const letters = name.length + (country?.length ?? 0) + (registry?.length ?? 0);
  if (record.type === "organisation") return letters + record.handle.length;
  const { holder, ipv6Words } = record;
  const address = ipv6Words ? (ipv6Words[7] as number) : Number(record.range.last);
  return letters + (holder?.type.length ?? 0) + (address & 1);
}

/** The whole way of an import up to the tree: disk, unpacking, digest, reader, placeholders, report. */
export const fromFile = (path: string) => async (): Promise<number> => {
  let records = 0;
  const receiver = {
    addNetwork: (record: RegistryRecord) => {
      records += Math.min(1, lettersOf(record));
    },
    addOrganisation: (record: RegistryRecord) => {
      records += Math.min(1, lettersOf(record));
    },
    addRoute: () => {
      records += 1;
    },
  };
  await readSources([path], receiver, () => {});
  return records;
};

/** Unpacking alone. */
export const gunzipOnly = (packed: Buffer, records: number) => async (): Promise<number> => {
  let bytes = 0;
  const stream = Readable.from([packed], { objectMode: false }).pipe(createGunzip({ chunkSize: 2 ** 20 }));
  for await (const chunk of stream as AsyncIterable<Buffer>) bytes += chunk.length;
  return bytes > 0 ? records : 0;
};

/** The plain way: node:readline, every attribute of an object into a map. */
export const readlineObjects = (chunks: Chunks) => async (): Promise<number> => {
  let records = 0;
  let attributes = new Map<string, string>();
  for await (const line of linesOf(chunks)) {
    if (line === "") {
      if (["inetnum", "inet6num", "organisation"].some((name) => attributes.has(name))) records++;
      attributes = new Map();
      continue;
    }
    const colon = line.indexOf(":");
    const name = line.slice(0, colon);
    if (!attributes.has(name)) attributes.set(name, line.slice(colon + 1).trim());
  }
  return records;
};

export const readlineFields = (chunks: Chunks) => async (): Promise<number> => {
  let records = 0;
  for await (const line of linesOf(chunks)) if (line.split("|")[2] === "ipv4") records++;
  return records;
};

const linesOf = (chunks: Chunks) =>
  createInterface({ input: Readable.from(chunks), crlfDelay: Number.POSITIVE_INFINITY });

/** fast-xml-parser on one record after the other, their ends found by `indexOf`. */
export const parserByRecord = (chunks: Chunks) => async (): Promise<number> => {
  const parser = new XMLParser({ parseTagValue: false });
  let records = 0;
  let rest = "";
  for (const chunk of chunks) {
    const text = rest + chunk.toString("utf8");
    let at = 0;
    for (let end = text.indexOf("</net>"); end >= 0; end = text.indexOf("</net>", at)) {
      const { net } = parser.parse(text.slice(text.indexOf("<net>", at), end + 6)) as {
        net: { handle: string };
      };
      if (net.handle !== "") records++;
      at = end + 6;
    }
    rest = text.slice(at);
  }
  return records;
};

/** Every byte, one after the other: how often this text stands there, by its last byte and the one before. */
export const byteScanner = (chunks: Chunks, ending: string) => async (): Promise<number> => {
  const last = ending.charCodeAt(ending.length - 1);
  const before = ending.charCodeAt(ending.length - 2);
  let found = 0;
  let previous = 0;
  for (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at++) {
      const code = chunk[at] as number;
      if (code === last && previous === before) found++;
      previous = code;
    }
  }
  return found;
};
