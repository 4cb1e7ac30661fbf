/**
 * Where a crawler's CPU goes, by stage: the samples of a V8 profile of the one-file bundle, each counted for the
 * nearest caller that a source file can be named for (esbuild writes the files' names into the bundle), and the
 * files summed up by what they are for.
 */
import { readFileSync } from "node:fs";

/** The first pattern that a file's path has says which stage it belongs to. */
type Stages = readonly (readonly [pattern: RegExp, stage: string])[];

const crawlStages: Stages = [
  [
    /entities|extract\/(read|page-|html|scan|text-blocks|open-el|element|tidy|main-text|charset)/,
    "reading HTML",
  ],
  [/extract\/(language|detect)|node_modules\/eld/, "language detection"],
  [/extract\/(\w+-tokens|tokens|token-|dictionar|lexeme|stop-words|stem|vector|word-|character-)/, "lexemes"],
  [/extract\/simhash|traps\//, "simhash, traps and doubles"],
  [/extract\//, "the rest of extraction"],
  [/node_modules\/undici|fetch\/|\/net\//, "fetching, inflating"],
  [/limits\/|crawl-slice|slice-|site-visit|task-loop/, "pace and limits"],
  [/protocol\/packed/, "packing"],
  [/spool\/|carrier/, "spool"],
  [/node_modules\/ws|link|protocol|zod/, "link and compression"],
];

interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

export interface StageTime {
  readonly name: string;
  readonly ms: number;
}

interface StageProfile {
  readonly stages: readonly StageTime[];
  /** Functions with the most time of their own, callees left out. */
  readonly functions: readonly StageTime[];
}

/** Idle time is left out; the collector's time is a stage of its own. */
export function stageProfile(
  profileFile: string,
  bundle: string,
  stages: Stages = crawlStages,
): StageProfile {
  const profile = JSON.parse(readFileSync(profileFile, "utf8")) as Profile;
  const fileAt = sourceFiles(bundle);
  const [byStage, byFunction] = [new Map<string, number>(), new Map<string, number>()];
  const places = placesOf(profile, fileAt, stages);
  profile.samples.forEach((id, index) => {
    const place = places.get(id)!;
    const ms = profile.timeDeltas[index]! / 1000;
    if (place.stage === null) return;
    byStage.set(place.stage, (byStage.get(place.stage) ?? 0) + ms);
    byFunction.set(place.label, (byFunction.get(place.label) ?? 0) + ms);
  });
  return { stages: largestFirst(byStage), functions: largestFirst(byFunction) };
}

interface Place {
  /** Null: idle. */
  readonly stage: string | null;
  readonly label: string;
}

function placesOf(
  profile: Profile,
  fileAt: (line: number) => string | null,
  stages: Stages,
): ReadonlyMap<number, Place> {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const places = new Map<number, Place>();
  const visit = (id: number, inherited: string) => {
    const { callFrame, children = [] } = nodes.get(id)!;
    const file = callFrame.url.startsWith("file:") ? fileAt(callFrame.lineNumber) : null;
    const stage = stageOf(callFrame.functionName, file, stages) ?? inherited;
    const where = file ?? (callFrame.url || "V8");
    places.set(id, {
      stage: callFrame.functionName === "(idle)" ? null : stage,
      label: `${callFrame.functionName || "(anonymous)"}  ${where}:${callFrame.lineNumber + 1}`,
    });
    for (const child of children) visit(child, stage);
  };
  visit(profile.nodes[0]!.id, "Node itself");
  return places;
}

function stageOf(functionName: string, file: string | null, stages: Stages): string | null {
  if (functionName === "(garbage collector)") return "garbage collection";
  if (file === null) return null;
  return stages.find(([pattern]) => pattern.test(file))?.[1] ?? "the rest of the crawler";
}

/** By line of the bundle: the source file that the line comes from. */
function sourceFiles(bundle: string): (line: number) => string | null {
  const files: string[] = [];
  let file = "";
  for (const line of readFileSync(bundle, "utf8").split("\n")) {
    file = /^(?: {2})?\/\/ ((?:\.\.\/)*(?:[\w@.-]+\/)+[\w@.-]+\.[cm]?[jt]s)$/.exec(line)?.[1] ?? file;
    files.push(file);
  }
  return (line) => files[line] || null;
}

function largestFirst(times: ReadonlyMap<string, number>): StageTime[] {
  return [...times].map(([name, ms]) => ({ name, ms })).sort((a, b) => b.ms - a.ms);
}
