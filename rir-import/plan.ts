/** Shows what an import would change by comparing files and database in memory. */

import { createHash } from "node:crypto";
import type { PoolClient } from "pg";
import type { PublishedRanges } from "#coordinator/place/subnets/published-ranges";
import { compareSpecificity, rangeAt } from "#coordinator/place/subnets/range-columns";
import { UsageError } from "#core/errors";
import { formatRange, type IpRange } from "#core/ip/range";
import type { Database } from "#db/server-database";
import { type OnProgress, readState, requireSubnets } from "./check.ts";
import { readCurrentHolders, readCurrentTree } from "./database/current-tree.ts";
import { breakDown, type ChangeBreakdown, sampleDifferences } from "./database/differences.ts";
import { currentGeneration } from "./database/generations.ts";
import {
  type AcceptedMoves,
  comparePublished,
  type PublishedDifference,
  type PublishedPlan,
} from "./database/published-lists.ts";
import { readSubnetsInUse } from "./database/subnets-in-use.ts";
import {
  type ChangeCounts,
  changeKinds,
  compareTrees,
  describeHolders,
  type FamilyDifference,
  type HolderChanges,
  type TreeDifference,
} from "./database/tree-difference.ts";
import type { FileReport } from "./read/file-report.ts";
import type { SourcePath } from "./read/open-source.ts";
import type { Loss, OutdatedFile, SubnetsInUse } from "./read/status-api.ts";
import { suspiciousLosses } from "./shrinkage.ts";
import { outdatedFiles } from "./status.ts";
import { HoldingRanges } from "./tree/holding-ranges.ts";
import type { RegistryState, StateSummary } from "./tree/registry-state.ts";

export interface ImportPlan extends ChangeBreakdown {
  /** Covers the contents of the files and the generation: `apply` with it does exactly what is planned, or nothing. */
  readonly fingerprint: string;
  readonly generation: number | null;
  readonly files: readonly FileReport[];
  readonly state: StateSummary;
  readonly changes: ChangeCounts;
  readonly samples: ReturnType<typeof sampleDifferences>;
  readonly holders: HolderChanges;
  readonly delegations: DelegationChanges;
  readonly inUse: SubnetsInUse;
  readonly published: PublishedPlan;
  /** Suspiciously large losses in remaining subnets and in published lists. */
  readonly losses: readonly Loss[];
  /** Files whose data are older than a quarter although newer data are published. */
  readonly outdated: readonly OutdatedFile[];
}

export interface PlanOptions {
  readonly yesMoved?: AcceptedMoves;
  readonly onProgress?: OnProgress;
  readonly samples?: number;
}

const defaultSamples = 20;

const mostLargest = 20;

/** Throws SourceFileError for an invalid source. */
export async function planImport(
  database: Database,
  paths: readonly SourcePath[],
  options: PlanOptions = {},
): Promise<ImportPlan> {
  const onProgress = options.onProgress ?? (() => {});
  const { files, state, published } = await readState(paths, onProgress);
  requireSubnets(files, state);
  const client = await database.pool.connect();
  try {
    await client.query("begin isolation level repeatable read read only");
    const { plan } = await compareState({
      client,
      files,
      state,
      published,
      yesMoved: options.yesMoved ?? [],
      onProgress,
      samples: options.samples ?? defaultSamples,
    });
    return plan;
  } finally {
    await client.query("rollback").catch(() => {});
    client.release();
  }
}

/** Reads the current tree in the caller's transaction and returns the differences. */
export async function compareState(work: {
  readonly client: PoolClient;
  readonly files: readonly FileReport[];
  readonly state: RegistryState;
  readonly published: PublishedRanges;
  readonly yesMoved: AcceptedMoves;
  readonly onProgress: OnProgress;
  readonly samples?: number;
}): Promise<{
  readonly plan: ImportPlan;
  readonly difference: TreeDifference;
  readonly publishedDifference: PublishedDifference;
}> {
  const { client, files, state } = work;
  const limit = work.samples ?? defaultSamples;
  const records = files.reduce((total, { read }) => total + read, 0);
  const report = (phase: "current" | "compare", done: number, total: number) =>
    work.onProgress({ phase, done, total, file: "", records });
  const tree = await readCurrentTree(client, state.texts, (rows) => report("current", rows, 0));
  const holders = await readCurrentHolders(client, state.texts, (key) => state.holders.find(key));
  report("compare", 0, 1);
  const difference = compareTrees(state, tree, holders);
  const generation = await currentGeneration(client);
  const publishedDifference = await comparePublished(client, work.published, work.yesMoved);
  const plan = {
    fingerprint: fingerprintOf(generation, files),
    generation,
    files,
    state: state.summary,
    changes: difference.counts,
    samples: sampleDifferences(state, difference, limit),
    holders: describeHolders(difference, (text) => state.texts.textAt(text), limit),
    delegations: await compareDelegations(client, difference, limit),
    inUse: await inUseOf(client, difference),
    published: publishedDifference.plan,
    losses: suspiciousLosses(difference, publishedDifference.plan),
    outdated: outdatedFiles(files, new Date()),
    ...breakDown(state, { tree, difference, limit: Math.min(limit, mostLargest) }),
  };
  report("compare", 1, 1);
  return { plan, difference, publishedDifference };
}

export function changesNothing({ changes, holders, published }: ImportPlan): boolean {
  const { added, returned, changed, moved, removed } = changes;
  const inTree = added + returned + changed + moved + removed + holders.renamed;
  return inTree + published.changedLists === 0;
}

// Identifies a plan by the generation compared and the files' contents. An import given a plan's fingerprint succeeds
// only while neither has changed.
//
// `12-5f2c…` is generation 12 with the first 32 hex digits of the SHA-256 over the files' own digests in order.
// `0-5f2c…` means an empty tree.

export const fingerprintForm = /^(\d{1,10})-([0-9a-f]{32})$/;

function fingerprintOf(generation: number | null, files: readonly Pick<FileReport, "sha256">[]): string {
  const digest = createHash("sha256").update(files.map(({ sha256 }) => sha256).join("\n"));
  return `${generation ?? 0}-${digest.digest("hex").slice(0, 32)}`;
}

export function requirePlannedGeneration(planned: string, generation: number | null): void {
  const [, before] = fingerprintForm.exec(planned) ?? [];
  if (before === undefined) throw new UsageError(`"${planned.slice(0, 80)}" is no plan's fingerprint`);
  if (Number(before) === (generation ?? 0)) return;
  const was = before === "0" ? "an empty tree" : `generation ${before}`;
  const now = generation === null ? "no registry is in force" : `generation ${generation} is in force`;
  throw new UsageError(`the plan was made against ${was}, and now ${now}: plan again`);
}

export function requirePlannedFiles(
  planned: string,
  generation: number | null,
  files: readonly FileReport[],
): void {
  if (fingerprintOf(generation, files) === planned) return;
  throw new UsageError("the files are not those that the plan was made from: plan again");
}

async function inUseOf(client: PoolClient, { ipv4, ipv6 }: TreeDifference): Promise<SubnetsInUse> {
  const inUse = await readSubnetsInUse(client);
  const going = [ipv4, ipv6].map(
    ({ current, removed }) => removed.filter((row) => inUse.has(current.ids[row] as number)).length,
  );
  return { total: inUse.size, going: going.reduce((sum, one) => sum + one, 0) };
}

// Shows what an import does to delegations. A delegation stays with its subnet. When the subnet is removed, its
// addresses belong to the next less specific one. They inherit its delegation, or that of its nearest delegated
// ancestor. If there is none they are lost, and the next URL there starts a probe round.

interface DelegationSample {
  readonly range: string;
  readonly from: string;
  /** The crawler that gets the addresses and the subnet whose delegation they inherit. Null when they are lost. */
  readonly to: string | null;
  readonly through: string | null;
}

interface DelegationChanges {
  readonly kept: number;
  readonly returned: number;
  readonly inherited: number;
  readonly lost: number;
  readonly inheritedSamples: readonly DelegationSample[];
  readonly lostSamples: readonly DelegationSample[];
}

async function compareDelegations(
  client: PoolClient,
  difference: TreeDifference,
  limit: number,
): Promise<DelegationChanges> {
  const crawlers = await readDelegations(client);
  const families = [difference.ipv4, difference.ipv6].map((family) => ownersIn(family, crawlers));
  const moves = families.flatMap(({ moves }) => moves);
  const inherited = moves.filter(({ to }) => to !== null);
  const lost = moves.filter(({ to }) => to === null);
  return {
    kept: families.reduce((sum, { kept }) => sum + kept, 0),
    returned: families.reduce((sum, { returned }) => sum + returned, 0),
    inherited: inherited.length,
    lost: lost.length,
    inheritedSamples: inherited.slice(0, limit),
    lostSamples: lost.slice(0, limit),
  };
}

async function readDelegations(client: PoolClient): Promise<ReadonlyMap<number, string>> {
  const { rows } = await client.query<{ subnet_id: number; crawler: string }>(
    "select d.subnet_id, k.name as crawler from delegation d join crawler k using (crawler_id)",
  );
  return new Map(rows.map(({ subnet_id, crawler }) => [subnet_id, crawler]));
}

function ownersIn(family: FamilyDifference, crawlers: ReadonlyMap<number, string>) {
  const owners = new Map<number, string>();
  let returned = 0;
  family.ids.forEach((id, place) => {
    const crawler = family.rows[place] === -1 ? undefined : crawlers.get(id);
    if (crawler === undefined) return;
    owners.set(place, crawler);
    if (changeKinds[family.kinds[place] as number] === "returned") returned += 1;
  });
  return { kept: owners.size - returned, returned, moves: movesOf(family, owners, crawlers) };
}

function movesOf(
  family: FamilyDifference,
  owners: ReadonlyMap<number, string>,
  crawlers: ReadonlyMap<number, string>,
): readonly DelegationSample[] {
  const { current, removed } = family;
  const delegated = removed.filter((row) => crawlers.has(current.ids[row] as number));
  if (delegated.length === 0) return [];
  const holding = new HoldingRanges(family.wanted.columns);
  return Array.from(delegated, (row) => {
    const range = rangeAt(current.columns, row);
    const heir = heirOf(family, holding, range, owners);
    return {
      range: formatRange(range),
      from: crawlers.get(current.ids[row] as number) as string,
      to: heir === null ? null : (owners.get(heir) as string),
      through: heir === null ? null : formatRange(rangeAt(family.wanted.columns, heir)),
    };
  });
}

function heirOf(
  { wanted }: FamilyDifference,
  holding: HoldingRanges,
  range: IpRange,
  owners: ReadonlyMap<number, string>,
): number | null {
  const [nearest] = holding.holdersOf(range).sort((a, b) => compareSpecificity(wanted.columns, a, b));
  for (let place = nearest ?? -1; place >= 0; place = wanted.parents[place] as number) {
    if (owners.has(place)) return place;
  }
  return null;
}
