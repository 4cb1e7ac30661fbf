/**
 * How fast registry text is read: CPU time per byte of our readers, beside plain ways to do the same work in
 * the same run, on generated files (same seed, same bytes). Run:
 *
 *   node --conditions=nearcrawl-source --import tsx test/bench/rir-parse.bench.ts
 *
 * Read the ratios, not the MB/s: those are this machine's, at this moment.
 */
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { seededRandom } from "#core/seeded-random";
import { openArinXmlReader } from "#rir-import/formats/arin-xml";
import { openDelegatedReader } from "#rir-import/formats/delegated";
import type { OpenReader } from "#rir-import/formats/record";
import { openRpslReader } from "#rir-import/formats/rpsl";

const runs = 7;
const chunkBytes = 262_144;
const random = seededRandom(20260);
const below = (limit: number) => Math.floor(random() * limit);

function rpslObject(): string {
  const first = [45 + below(100), below(256), below(256)].join(".");
  const remarks = Array.from(
    { length: below(4) },
    () => "remarks:        For abuse please write to abuse@example.net\n",
  ).join("");
  return `inetnum:        ${first}.0 - ${first}.255\nnetname:        EX-NET-${below(1e6)}\ndescr:          Example Customer ${below(1e5)}\ndescr:          Street ${below(200)}, Town\ncountry:        ${["NL", "DE", "FR", "GB"][below(4)]}\norg:            ORG-EX${below(1e5)}-RIPE\nadmin-c:        DUMY-RIPE\ntech-c:         DUMY-RIPE\nstatus:         ASSIGNED PA\nmnt-by:         EX${below(1e4)}-MNT\n${remarks}created:        2012-05-04T08:00:00Z\nlast-modified:  2021-02-03T10:11:12Z\nsource:         RIPE\n\n`;
}

function rpsl6Object(): string {
  const prefix = `2a${below(16).toString(16)}${below(16).toString(16)}:${below(65536).toString(16)}:${below(65536).toString(16)}`;
  return `inet6num:       ${prefix}::/48\nnetname:        EX6-NET-${below(1e6)}\ncountry:        NL\norg:            ORG-EX${below(1e5)}-RIPE\nadmin-c:        DUMY-RIPE\ntech-c:         DUMY-RIPE\nstatus:         ASSIGNED\nmnt-by:         EX${below(1e4)}-MNT\ncreated:        2012-05-04T08:00:00Z\nlast-modified:  2021-02-03T10:11:12Z\nsource:         RIPE\n\n`;
}

function arinNet(): string {
  const octets = [45 + below(100), below(256), below(256)]
    .map((octet) => String(octet).padStart(3, "0"))
    .join(".");
  return `<net>\n<endAddress>${octets}.255</endAddress><handle>NET-${below(1e9)}-1</handle><name>EXAMPLE-${below(1e5)}</name><netBlocks><netBlock><cidrLenth>24</cidrLenth><endAddress>${octets}.255</endAddress><startAddress>${octets}.000</startAddress><type>S</type></netBlock></netBlocks><pocLinks/><orgHandle>EXAMP-${below(1e5)}</orgHandle><parentNetHandle>NET-45-0-0-0-0</parentNetHandle><registrationDate>2012-05-04T00:00:00-04:00</registrationDate><startAddress>${octets}.000</startAddress><updateDate>2012-05-04T00:00:00-04:00</updateDate><version>4</version>\n</net>\n`;
}

const statisticsLine = () =>
  `ripencc|NL|ipv4|${45 + below(100)}.${below(256)}.${below(256)}.0|256|20120504|allocated|${below(1e9).toString(16)}-4d3a-9c1b\n`;

/** Text of about that many bytes, in the chunks in which a file arrives. */
function chunksOf(
  bytes: number,
  part: () => string,
  frame: readonly [string, string] = ["", ""],
): readonly Buffer[] {
  const parts = [frame[0]];
  for (let length = 0; length < bytes; ) {
    const next = part();
    parts.push(next);
    length += next.length;
  }
  const all = Buffer.from(parts.join("") + frame[1]);
  return Array.from({ length: Math.ceil(all.length / chunkBytes) }, (_, index) =>
    all.subarray(index * chunkBytes, (index + 1) * chunkBytes),
  );
}

/** Reads the chunks and gives the number of records, so that both sides can be seen to do the same work. */
type Work = (chunks: readonly Buffer[]) => Promise<number>;

const reader =
  (open: OpenReader): Work =>
  async (chunks) => {
    let records = 0;
    const nothing = () => {};
    const sink = {
      record: () => {
        records++;
      },
      ignore: nothing,
      malformed: nothing,
      warn: nothing,
      facts: nothing,
    };
    const opened = open("bench", sink);
    for (const chunk of chunks) opened.push(chunk);
    opened.end();
    return records;
  };

/** The plain way: node:readline, every attribute of an object into a map, the object handed on at the empty line. */
const readlineObjects: Work = async (chunks) => {
  let records = 0;
  let attributes = new Map<string, string>();
  for await (const line of createInterface({
    input: Readable.from(chunks),
    crlfDelay: Number.POSITIVE_INFINITY,
  })) {
    if (line === "") {
      if (attributes.has("inetnum") || attributes.has("inet6num")) records++;
      attributes = new Map();
      continue;
    }
    const colon = line.indexOf(":");
    const name = line.slice(0, colon);
    if (!attributes.has(name)) attributes.set(name, line.slice(colon + 1).trim());
  }
  return records;
};

const readlineFields: Work = async (chunks) => {
  let records = 0;
  for await (const line of createInterface({
    input: Readable.from(chunks),
    crlfDelay: Number.POSITIVE_INFINITY,
  })) {
    if (line.split("|")[2] === "ipv4") records++;
  }
  return records;
};

interface Measure {
  readonly mbPerCpuSecond: number;
  readonly records: number;
}

async function measure(work: Work, chunks: readonly Buffer[]): Promise<Measure> {
  const bytes = chunks.reduce((total, chunk) => total + chunk.length, 0);
  const before = process.cpuUsage();
  const records = await work(chunks);
  const { user, system } = process.cpuUsage(before);
  return { mbPerCpuSecond: bytes / (user + system), records };
}

const median = (values: readonly number[]) =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

async function compare(
  name: string,
  chunks: readonly Buffer[],
  sides: Readonly<Record<string, Work>>,
): Promise<void> {
  const speeds: Record<string, number[]> = {};
  const counts = new Set<number>();
  for (let run = 0; run <= runs; run++) {
    for (const [side, work] of Object.entries(sides)) {
      const { mbPerCpuSecond, records } = await measure(work, chunks);
      counts.add(records);
      if (run > 0) speeds[side] = [...(speeds[side] ?? []), mbPerCpuSecond];
    }
  }
  if (counts.size !== 1)
    throw new Error(`${name}: the sides disagree on the records: ${[...counts].join(", ")}`);
  for (const [side, values] of Object.entries(speeds)) {
    const spread = `${Math.min(...values).toFixed(0)} to ${Math.max(...values).toFixed(0)}`;
    process.stdout.write(`| ${name} | ${side} | ${median(values).toFixed(0)} | ${spread} |\n`);
  }
}

const megabytes = Number(process.argv[2] ?? 48) * 1e6;
process.stdout.write("| input | reader | MB per CPU second, median | spread |\n|---|---|---|---|\n");
await compare("RPSL inetnum", chunksOf(megabytes, rpslObject), {
  ours: reader(openRpslReader),
  readline: readlineObjects,
});
await compare("RPSL inet6num", chunksOf(megabytes / 2, rpsl6Object), {
  ours: reader(openRpslReader),
  readline: readlineObjects,
});
await compare("delegated", chunksOf(megabytes / 4, statisticsLine, ["2|ripencc|1|1|||\n", ""]), {
  ours: reader(openDelegatedReader),
  readline: readlineFields,
});
await compare("ARIN XML", chunksOf(megabytes / 4, arinNet, ["<bulkwhois>\n", "</bulkwhois>\n"]), {
  ours: reader(openArinXmlReader),
});
process.stdout.write(
  `\nnode ${process.version}, ${runs} runs; peak memory ${Math.round(process.resourceUsage().maxRSS / 1024)} MB\n`,
);
