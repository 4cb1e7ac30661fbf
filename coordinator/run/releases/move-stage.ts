/**
 * Moves the stage of a release, by hand or automatically. `stageOf` parses an operator's request. `advanceReleases`
 * moves the automatic ones, and withdraws an offer that does harm.
 */
import type { Change } from "#core/audit";
import { UsageError } from "#core/errors";
import type { CrawlerId } from "#core/ids";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import type { CrawlerHello } from "#protocol/messages";
import type { ReleaseReport } from "../gateway/gateway-settings.ts";
import type { ReleaseFleetStore } from "./fleet-store.ts";
import type { ReleaseEntry, ReleaseStore, StageChange, SupervisedEntry } from "./release-store.ts";
import {
  automaticPercent,
  decideStage,
  mayRun,
  type ReleaseStage,
  rankedCrawlers,
  releaseFor,
  type StageDecision,
  stageMembers,
  withMembers,
} from "./staging.ts";

interface StagePorts {
  readonly releases: Pick<ReleaseStore, "list" | "setStage">;
  readonly releaseFleet: Pick<ReleaseFleetStore, "crawlers" | "watched">;
}

/** `to` is `one`, `one=NAME`, a percentage (`5` or `5%`) or `all`. Throws a UsageError that says what to do instead. */
export async function stageRelease(
  {
    version,
    to,
    again = false,
    soakMinutes = null,
    words = "by an operator",
  }: {
    readonly version: string;
    readonly to: string;
    readonly again?: boolean;
    readonly soakMinutes?: number | null;
    readonly words?: string;
  },
  ports: StagePorts,
  now: Date,
): Promise<{ readonly entry: ReleaseEntry; readonly members: readonly string[] }> {
  const entry = await knownRelease(version, ports);
  if (!mayRun(entry, now)) throw new UsageError(`${version} cannot be offered: ${whyNot(entry, now)}`);
  const crawlers = await ports.releaseFleet.crawlers();
  const stage = readStage(to);
  const first = stage.stage === "one" ? firstCrawler(stage.name, entry, crawlers) : null;
  const change: StageChange = {
    stage: stage.stage,
    percent: stage.percent,
    words,
    soakMinutes,
    again,
    ...(first === null ? {} : { firstCrawlerId: first.crawlerId }),
  };
  await ports.releases.setStage(version, change, now);
  const staged = await knownRelease(version, ports);
  const members = stageMembers(staged, crawlers);
  return {
    entry: staged,
    members: crawlers.filter(({ crawlerId }) => members.has(crawlerId)).map(({ name }) => name),
  };
}

/** Stops offering the release. Crawlers that run it keep it. */
export async function holdRelease(
  version: string,
  words: string,
  ports: StagePorts,
  now: Date,
): Promise<void> {
  await knownRelease(version, ports);
  await ports.releases.setStage(version, { stage: "none", percent: null, words, soakMinutes: null }, now);
}

interface StageMove {
  readonly version: string;
  readonly type: "advance" | "elsewhere" | "stop";
  readonly stage: ReleaseStage;
  readonly words: string;
}

/**
 * Checks automatic releases once. Only the newest one moves. If several coordinators check at the same time, one of
 * them moves it.
 */
export async function advanceReleases(ports: StagePorts, now: Date): Promise<readonly StageMove[]> {
  const moves: StageMove[] = [];
  const staged = (await ports.releases.list()).filter(({ stage }) => stage !== "none");
  for (const [newer, entry] of staged.entries()) {
    if (entry.soakMinutes === null) continue;
    const move =
      newer === 0 ? await nextMove(entry, ports, now) : await overtaken(entry, staged[0]!, { ports, now });
    if (move) moves.push(move);
  }
  return moves;
}

export async function judgeStage(
  entry: ReleaseEntry,
  { releaseFleet }: Pick<StagePorts, "releaseFleet">,
  now: Date,
): Promise<StageDecision> {
  if (!mayRun(entry, now)) return { type: "stop", words: whyNot(entry, now) };
  const stageSince = entry.stageSince ?? now;
  const members = stageMembers(entry, await releaseFleet.crawlers());
  const watched = await releaseFleet.watched(entry.version, stageSince);
  const crawlers = watched.map((one) => ({ ...one, inStage: members.has(one.crawlerId) }));
  return decideStage({ crawlers, stageSince, soakMinutes: entry.soakMinutes ?? 0, now });
}

async function nextMove(entry: ReleaseEntry, ports: StagePorts, now: Date): Promise<StageMove | null> {
  const { version, stage, soakMinutes } = entry;
  const decided = await judgeStage(entry, ports, now);
  if (decided.type === "stay") return null;
  const another = decided.type === "elsewhere" ? await anotherFirst(entry, ports) : null;
  const isHeld = decided.type === "stop" || (decided.type === "elsewhere" && another === null);
  const next = isHeld ? nowhere : another !== null ? onlyOne : after(stage);
  const words = another === null ? decided.words : `${decided.words}; ${another.name} tries it`;
  const change = {
    ...{ ...next, words, soakMinutes: next.ends ? null : soakMinutes },
    ...{ from: { stage, stageSince: entry.stageSince } },
    ...(another === null ? {} : { firstCrawlerId: another.crawlerId }),
  };
  const moved = await ports.releases.setStage(version, change, now);
  return moved ? { version, type: isHeld ? "stop" : decided.type, stage: next.stage, words } : null;
}

/** Returns the next connected crawler, by rank, that runs another release. */
async function anotherFirst(
  entry: ReleaseEntry,
  { releaseFleet }: StagePorts,
): Promise<SupervisedEntry | null> {
  const crawlers = await releaseFleet.crawlers();
  const fitting = rankedCrawlers(entry.digest, crawlers).filter(
    ({ crawlerId, online, digest }) =>
      online && digest !== entry.digest && crawlerId !== entry.firstCrawlerId,
  );
  return fitting[0] ?? null;
}

/** Crawlers take the newer release instead, so this one keeps its stage, for which there will be no further evidence. */
async function overtaken(
  entry: ReleaseEntry,
  newest: ReleaseEntry,
  { ports, now }: { readonly ports: StagePorts; readonly now: Date },
): Promise<StageMove | null> {
  const { version, stage, percent, stageSince } = entry;
  const words = `${newest.version} is offered in its place`;
  const change = { stage, percent, words, soakMinutes: null, from: { stage, stageSince } };
  const moved = await ports.releases.setStage(version, change, now);
  return moved ? { version, type: "stop", stage, words } : null;
}

interface NextStage {
  readonly stage: ReleaseStage;
  readonly percent: number | null;
  readonly ends: boolean;
}

const onlyOne: NextStage = { stage: "one", percent: null, ends: false };
const nowhere: NextStage = { stage: "none", percent: null, ends: true };

/** A release that did well in all crawlers for the soak time becomes the fleet's regular release. */
function after(stage: ReleaseStage): NextStage {
  if (stage === "one") return { stage: "percent", percent: automaticPercent, ends: false };
  return { stage: "all", percent: null, ends: stage === "all" };
}

function readStage(to: string): {
  stage: Exclude<ReleaseStage, "none">;
  percent: number | null;
  name: string | null;
} {
  if (to === "all") return { stage: "all", percent: null, name: null };
  const one = /^one(?:=(.{1,63}))?$/.exec(to);
  if (one) return { stage: "one", percent: null, name: one[1] ?? null };
  const percent = /^(\d{1,3}(?:\.\d{1,2})?)%?$/.exec(to)?.[1];
  if (percent !== undefined && Number(percent) > 0 && Number(percent) <= 100) {
    return { stage: "percent", percent: Number(percent), name: null };
  }
  throw new UsageError(
    `--to ${to.slice(0, 80)}: must be one, one=NAME, a percentage from 0.01 to 100, or all`,
  );
}

function firstCrawler(
  name: string | null,
  entry: ReleaseEntry,
  crawlers: readonly SupervisedEntry[],
): SupervisedEntry {
  if (crawlers.length === 0) {
    throw new UsageError("no crawler that takes releases has connected yet: nearcrawl fleet list shows them");
  }
  if (name !== null) {
    const named = crawlers.find((crawler) => crawler.name === name);
    if (named) return named;
    throw new UsageError(
      `no crawler "${name}" takes releases; these do: ${crawlers
        .slice(0, 20)
        .map((crawler) => crawler.name)
        .join(", ")}`,
    );
  }
  const ranked = rankedCrawlers(entry.digest, crawlers);
  return ranked.find(({ online, digest }) => online && digest !== entry.digest) ?? ranked[0]!;
}

async function knownRelease(version: string, { releases }: StagePorts): Promise<ReleaseEntry> {
  const entry = (await releases.list()).find((one) => one.version === version);
  if (entry) return entry;
  throw new UsageError(`no release "${version.slice(0, 40)}" is published: nearcrawl release list`);
}

function whyNot({ revoked, trusted, expiresAt }: ReleaseEntry, now: Date): string {
  if (revoked) return "it was revoked";
  if (expiresAt <= now) return `it expired at ${expiresAt.toISOString()}: sign and publish it again`;
  return trusted
    ? "nothing is wrong with it"
    : "the key that signed it was retired: sign and publish it again";
}

// Offers crawlers the releases that they may take: only to crawlers of version 3 or later with a supervisor, and once
// per session and release. Their supervisors fetch, verify, decide and report.

export interface OfferPorts {
  readonly releases: Pick<ReleaseStore, "list">;
  readonly releaseFleet: ReleaseFleetStore;
  readonly online: () => readonly CrawlerId[];
  readonly send: (crawlerId: CrawlerId, message: CoordinatorMessage) => boolean;
  readonly now: () => Date;
}

export class ReleaseOffers {
  readonly #ports: OfferPorts;
  /** The crawlers of this process with a supervisor, and the number of the release that each was last told of. */
  readonly #sessions = new Map<CrawlerId, { heardOf: number | null }>();

  constructor(ports: OfferPorts) {
    this.#ports = ports;
  }

  /** Records a new crawler for the fleet's list and the next pass. */
  async arrived(crawlerId: CrawlerId, hello: CrawlerHello): Promise<void> {
    const runs = hello.release ?? null;
    if (runs) this.#sessions.set(crawlerId, { heardOf: null });
    else this.#sessions.delete(crawlerId);
    await this.#ports.releaseFleet.arrived(crawlerId, runs);
  }

  /** Returns false if the release was never published here. */
  async reported(crawlerId: CrawlerId, { version, state, reason }: ReleaseReport): Promise<boolean> {
    return await this.#ports.releaseFleet.reported(crawlerId, { version, state, reason }, this.#ports.now());
  }

  async pass(): Promise<number> {
    const connected = new Set(this.#ports.online());
    const waiting = [...this.#sessions].filter(([crawlerId]) => connected.has(crawlerId));
    if (waiting.length === 0) return 0;
    const [releases, crawlers] = await Promise.all([
      this.#ports.releases.list(),
      this.#ports.releaseFleet.crawlers(),
    ]);
    const staged = withMembers(releases, crawlers);
    const crawlerOf = new Map(crawlers.map((crawler) => [crawler.crawlerId, crawler]));
    let offered = 0;
    for (const [crawlerId, session] of waiting) {
      const crawler = crawlerOf.get(crawlerId);
      const release = crawler ? releaseFor(crawler, staged, this.#ports.now()) : null;
      if (!release) session.heardOf = null;
      else if (session.heardOf !== release.sequence && (await this.#offer(crawlerId, release))) {
        session.heardOf = release.sequence;
        offered += 1;
      }
    }
    return offered;
  }

  async #offer(
    crawlerId: CrawlerId,
    { version, digest }: { readonly version: string; readonly digest: string },
  ): Promise<boolean> {
    if (!this.#ports.send(crawlerId, { type: "coordinator:release", version, digest })) return false;
    await this.#ports.releaseFleet.offered(crawlerId, version, this.#ports.now());
    return true;
  }
}

export function releaseMoved({ version, type, stage, words }: StageMove): Change {
  const action = type === "stop" ? "release-held" : "release-staged";
  const said = {
    stop: `Release ${version} is held: ${words}.`,
    advance: `Release ${version} moved on: ${words}.`,
    elsewhere: `Release ${version} is tried by another crawler first: ${words}.`,
  }[type];
  return { action, target: `release ${version}`, words: said, after: { stage } };
}
