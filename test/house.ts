/**
 * Measures how the source is laid out, and finds what breaks its rules: imports in a circle, imports of a higher storey,
 * files that do what their name does not say, and lines that are too wide. `ops/architecture.md` explains the rules; `npm
 * run house` prints the figures, `test/house.test.ts` fails where a rule is broken.
 */
import { readdirSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { wings } from "#ops/house";

export interface SourceFile {
  /** From the root, with slashes. */
  readonly path: string;
  readonly lines: number;
  /** Paths of the project's own files that it imports, types included. */
  readonly imports: readonly string[];
  /** Those of them of which it takes more than types. */
  readonly valueImports: readonly string[];
  /** Packages and Node modules that it imports, types included. */
  readonly packages: readonly string[];
  /** Without its comments. */
  readonly code: string;
  /** Columns of its widest line. */
  readonly widest: number;
}

export interface House {
  readonly files: readonly SourceFile[];
  /** Files that import one another in a circle, each circle once. */
  readonly circles: readonly (readonly string[])[];
  readonly upwardImports: readonly Import[];
  /** What a file does although its name does not say so. */
  readonly misnamed: readonly { readonly path: string; readonly why: string }[];
  /** Files with lines of more than `mostColumns`, which no formatter breaks: texts and templates. */
  readonly tooWide: readonly string[];
}

/** Of a line: what a window beside another shows whole. */
const mostColumns = 160;

export interface Import {
  readonly from: string;
  readonly to: string;
}

const sourceFolders = ["coordinator", "migrating-crawler", "rir-import", "ops", "db"];

/** As in the `imports` of package.json. */
const doors: readonly (readonly [string, string])[] = [
  ["#core/", "coordinator/core/"],
  ["#protocol/", "coordinator/protocol/"],
  ["#db/", "db/"],
  ["#coordinator/", "coordinator/"],
  ["#crawler/", "migrating-crawler/"],
  ["#rir-import/", "rir-import/"],
  ["#ops/", "ops/"],
];

/** Of files that lie in no room. */
const wiring = ".";

/** Lowest first: a file imports from its own room, from rooms of its storey, and from those below. */
const storeysOf: Readonly<Record<string, readonly (readonly string[])[]>> = {
  coordinator: [...wings.flatMap(({ rooms }) => rooms.map((room) => [room])), [wiring]],
  "migrating-crawler": [
    ["core"],
    ["settings"],
    ["limits"],
    ["net", "spool"],
    ["membership", "preferences", "traps"],
    ["extract"],
    ["fetch"],
    ["probe", "warc"],
    ["link"],
    ["crawl"],
    ["status", "move", "check"],
    [wiring],
    ["supervisor"],
    ["cli"],
  ],
  "rir-import": [["formats", "tree", "read"], ["database"], ["download"], [wiring]],
  ops: [["world"], ["cli", "pictures"], [wiring]],
};

export function readHouse(root: string): House {
  const files = sourceFolders.flatMap((folder) => readFolder(root, folder));
  return {
    files,
    circles: circlesOf(files),
    upwardImports: files.flatMap((file) => upwardImportsOf(file)),
    misnamed: files.flatMap((file) => faultsOf(file).map((why) => ({ path: file.path, why }))),
    tooWide: files.filter(({ widest }) => widest > mostColumns).map(({ path }) => path),
  };
}

function readFolder(root: string, folder: string): SourceFile[] {
  const entries = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" });
  const paths = entries.map((path) => `${folder}/${path.replaceAll("\\", "/")}`);
  const sources = paths.filter((path) => path.endsWith(".ts")).sort();
  const known = new Set(sources);
  return sources.map((path) => {
    const text = readFileSync(join(root, path), "utf8");
    const code = text.replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*$/gm, "");
    const specifiers = [...code.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"([^"]+)"/g)].map(
      ([, one]) => one ?? "",
    );
    const resolved = specifiers.map((specifier) => ownPath(path, specifier));
    return {
      path,
      lines: text.split("\n").length - 1,
      imports: [...new Set(resolved.filter((one) => one !== null && known.has(one)))] as string[],
      valueImports: valuesTaken(code)
        .map((specifier) => ownPath(path, specifier))
        .filter((one) => one !== null && known.has(one)) as string[],
      packages: [...new Set(specifiers.filter((_, index) => resolved[index] === null))],
      code,
      widest: Math.max(...text.split("\n").map((line) => line.length)),
    };
  });
}

/** Specifiers of `import { x, type Y } from`, not of `import type` or of types alone. */
function valuesTaken(code: string): string[] {
  const statements = [...code.matchAll(/^import\s+(type\s)?([^"]*?)\s+from\s+"([^"]+)"/gm)];
  return statements.flatMap(([, isType, names = "", specifier = ""]) => {
    const taken = names.replace(/^\{|\}$/g, "").split(",");
    const isValue = isType === undefined && taken.some((one) => /^\s*(?!type\s)\S/.test(one));
    return isValue ? [specifier] : [];
  });
}

/** Null: a package. */
function ownPath(from: string, specifier: string): string | null {
  if (specifier.startsWith(".")) return posix.join(posix.dirname(from), specifier);
  const door = doors.find(([name]) => specifier.startsWith(name));
  return door === undefined ? null : `${door[1]}${specifier.slice(door[0].length)}.ts`;
}

/** Strongly connected components of more than one file (Tarjan). */
function circlesOf(files: readonly SourceFile[]): string[][] {
  const importsOf = new Map(files.map(({ path, imports }) => [path, imports]));
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const circles: string[][] = [];
  const visit = (path: string): void => {
    order.set(path, order.size);
    let low = order.get(path) as number;
    open.push(path);
    for (const next of importsOf.get(path) ?? []) {
      if (!order.has(next)) visit(next);
      if (open.includes(next)) low = Math.min(low, lowest.get(next) ?? (order.get(next) as number));
    }
    lowest.set(path, low);
    if (low !== order.get(path)) return;
    const circle = open.splice(open.indexOf(path));
    if (circle.length > 1) circles.push(circle.sort());
  };
  for (const { path } of files) if (!order.has(path)) visit(path);
  return circles;
}

function upwardImportsOf({ path, imports }: SourceFile): Import[] {
  const storey = storeyOf(path);
  return imports
    .filter((to) => houseOf(to) === houseOf(path))
    .filter((to) => storeyOf(to) > storey || isForMainAlone(to, path))
    .map((to) => ({ from: path, to }));
}

/** A room's wiring is set going by `ground.ts`, `rooms.ts` and `main.ts`, its pages by `room-pages.ts`, and by nobody else. */
function isForMainAlone(to: string, from: string): boolean {
  const wired = ["ground", "rooms", "main", "room-pages"].map((name) => `coordinator/${name}.ts`);
  return to !== from && /^coordinator\/.+\/start\.ts$/.test(to) && !wired.includes(from);
}

const houseOf = (path: string): string => path.split("/")[0] as string;

/** The parts of a path, without the wing that its room is in. */
function roomPath(path: string): string[] {
  const parts = path.split("/");
  const isInWing = parts[0] === "coordinator" && wings.some(({ name }) => name === parts[1]);
  return isInWing ? parts.toSpliced(1, 1) : parts;
}

/** 0 where its house has one storey. */
function storeyOf(path: string): number {
  const [house, room, ...rest] = roomPath(path);
  const storeys = storeysOf[house as string];
  if (storeys === undefined) return 0;
  const storey = storeys.findIndex((rooms) => rooms.includes(rest.length === 0 ? wiring : (room as string)));
  if (storey === -1) throw new TypeError(`${path}: no storey has a room ${room}`);
  return storey;
}

/** What files of a kind may do; `other`: rules and flows, which are handed all they need. */
const allowed = {
  store: ["Postgres", "I/O", "the clock", "chance"],
  routes: ["HTTP", "HTML", "the clock"],
  page: ["HTML"],
  start: ["Postgres", "HTTP", "HTML", "I/O", "the clock", "chance"],
  /** Of other machines, of threads, of time itself. */
  outside: ["I/O", "the clock", "chance"],
  other: [],
} as const satisfies Record<string, readonly Doing[]>;

type Doing = "Postgres" | "HTTP" | "HTML" | "I/O" | "the clock" | "chance";

/** Rooms whose subject is the machine or the network itself. */
const outerRooms = ["web", "ask", "gateway", "database", "protocol"];

function faultsOf({ path, packages, code, valueImports }: SourceFile): string[] {
  const [house, room, ...rest] = roomPath(path);
  if (house !== "coordinator" || rest.length === 0 || outerRooms.includes(room as string)) return [];
  const does: Doing[] = [];
  if (packages.some((name) => /^pg(-copy-streams)?$/.test(name))) does.push("Postgres");
  if (packages.some((name) => /^(@?fastify\b|node:http)/.test(name))) does.push("HTTP");
  if (/\bhtml`/.test(code)) does.push("HTML");
  if (packages.some((name) => /^node:(fs|net|dns|dgram|tls|child_process|worker_threads|os)\b/.test(name)))
    does.push("I/O");
  if (/\bDate\.now\(\)|\bnew Date\(\)|\bperformance\.now\(/.test(code)) does.push("the clock");
  if (/\bMath\.random\b|\brandom(Bytes|UUID|Int)\(/.test(code)) does.push("chance");
  const kind = kindOf(rest.at(-1) as string);
  const may: readonly Doing[] = allowed[kind];
  const name = kind === "other" ? "a rule" : kind;
  return [
    ...does.filter((one) => !may.includes(one)).map((one) => `${name}: ${one}`),
    ...valueImports.filter((to) => !mayTakeFrom(kind, to)).map((to) => `${name}: takes from ${to}`),
  ];
}

/** Rules and pages are handed what stores read; no rule needs a page. */
function mayTakeFrom(kind: keyof typeof allowed, to: string): boolean {
  const [house, room] = roomPath(to);
  if (house !== "coordinator" || outerRooms.includes(room as string)) return true;
  const taken = kindOf(to.split("/").at(-1) as string);
  if (kind === "page") return taken !== "store" && taken !== "routes" && taken !== "start";
  return kind !== "other" || taken === "other" || taken === "outside";
}

const suffixForm =
  /(?:^|-)(store|reads|writes|sql|routes|page|pages|ask|client|worker|clock|scheduler|resolver)\.ts$/;

function kindOf(name: string): keyof typeof allowed {
  if (name === "start.ts") return "start";
  const [, suffix] = suffixForm.exec(name) ?? [];
  if (suffix === undefined) return "other";
  if (/client|worker|clock|scheduler|resolver/.test(suffix)) return "outside";
  if (suffix === "routes") return "routes";
  return suffix.startsWith("page") || suffix === "ask" ? "page" : "store";
}

export interface WingSize {
  readonly wing: string;
  readonly lines: number;
  /** As many as it may have (ops/house). */
  readonly most: number;
}

export function wingSizes({ files }: House): WingSize[] {
  const linesOf = (room: string) =>
    files
      .filter(({ path }) => roomPath(path)[1] === room && houseOf(path) === "coordinator")
      .reduce((sum, { lines }) => sum + lines, 0);
  return wings.map(({ name, rooms, most }) => ({
    wing: name,
    lines: rooms.reduce((sum, room) => sum + linesOf(room), 0),
    most,
  }));
}

export interface HouseFigures {
  readonly folder: string;
  readonly files: number;
  readonly lines: number;
  readonly medianLines: number;
  readonly longestLines: number;
  /** Files that just one other file imports. */
  readonly singleImporters: number;
}

export function figuresOf({ files }: House): HouseFigures[] {
  const importers = new Map<string, number>();
  for (const { imports } of files)
    for (const path of imports) importers.set(path, (importers.get(path) ?? 0) + 1);
  const figures = (folder: string, some: readonly SourceFile[]): HouseFigures => {
    const lines = some.map((file) => file.lines).sort((a, b) => a - b);
    return {
      folder,
      files: some.length,
      lines: lines.reduce((sum, one) => sum + one, 0),
      medianLines: lines[lines.length >> 1] ?? 0,
      longestLines: lines.at(-1) ?? 0,
      singleImporters: some.filter(({ path }) => importers.get(path) === 1).length,
    };
  };
  const folders = sourceFolders.map((folder) =>
    figures(
      folder,
      files.filter(({ path }) => houseOf(path) === folder),
    ),
  );
  return [...folders, figures("all", files)];
}

function print(house: House): void {
  const say = (text: string) => process.stdout.write(`${text}\n`);
  const rows = figuresOf(house).map((one) => [
    one.folder,
    ...[one.files, one.lines, one.medianLines, one.longestLines, one.singleImporters].map(String),
  ]);
  const heads = ["", "files", "lines", "median", "longest", "one importer"];
  const width = (column: number) =>
    Math.max(...[heads, ...rows].map((row) => (row[column] as string).length));
  for (const row of [heads, ...rows])
    say(row.map((cell, at) => (at === 0 ? cell.padEnd(width(at)) : cell.padStart(width(at)))).join("  "));
  say("");
  for (const { wing, lines, most } of wingSizes(house)) say(`${wing.padEnd(8)} ${lines} of ${most} lines`);
  say(`\nimport circles: ${house.circles.length}`);
  for (const circle of house.circles) say(`  ${circle.join(" ")}`);
  say(`imports of a higher storey: ${house.upwardImports.length}`);
  for (const { from, to } of house.upwardImports) say(`  ${from} imports ${to}`);
  say(`files that do what their name does not say: ${house.misnamed.length}`);
  for (const { path, why } of house.misnamed) say(`  ${path} (${why})`);
  say(`files with lines wider than ${mostColumns} columns: ${house.tooWide.length}`);
  for (const path of house.tooWide) say(`  ${path}`);
}

const script = process.argv[1];
if (script !== undefined && realpathSync(script) === fileURLToPath(import.meta.url)) {
  const house = readHouse(dirname(dirname(fileURLToPath(import.meta.url))));
  if (process.argv.includes("--json")) {
    const { circles, upwardImports, misnamed, tooWide } = house;
    process.stdout.write(
      `${JSON.stringify({ figures: figuresOf(house), circles, upwardImports, misnamed, tooWide }, null, 2)}\n`,
    );
  } else print(house);
}
