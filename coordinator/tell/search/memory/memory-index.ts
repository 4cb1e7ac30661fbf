/**
 * The index in memory: segments of pages, the newest last, and the numbers of all names. Changed pages are removed
 * where they are and added to a new segment. The owner calls `joinSome` now and then, which keeps segments few.
 */
import type { UseAnswers } from "#protocol/preferences";
import { Groups, Hosts, Names } from "./names.ts";
import { type DocumentWords, joined, type Segment, SegmentBuilder, segmentPages } from "./segment.ts";
import { TermTable } from "./term-table.ts";

/** A page as the database has it. */
export interface IndexedPage extends DocumentWords {
  readonly hostHash: bigint;
  readonly urlHash: bigint;
  readonly host: string;
  readonly language: string | null;
  readonly configuration: string;
  readonly crawlerId: number;
  readonly publishedS: number | null;
  readonly fetchedS: number;
  readonly linkingHosts: number;
  readonly isLaterCopy: boolean;
  readonly textGroup: bigint | null;
  readonly preferenceSet: number | null;
  readonly contentType: string;
}

/** This many segments of about one size become one. */
const joinedAtOnce = 6;

/** A segment that has lost this share of its pages is rebuilt without them. */
const lostShare = 0.3;

export class MemoryIndex {
  readonly terms: TermTable;
  readonly hosts = new Hosts();
  readonly languages = new Names();
  readonly countries = new Names();
  readonly contentTypes = new Names();
  readonly configurations = new Names();
  /** By their numbers in the database, as text. */
  readonly crawlers = new Names();
  readonly groups = new Groups();
  /** The answers of each list of statements. */
  readonly uses = new Map<number, UseAnswers>();
  /** Lists whose answers are not known yet. */
  readonly newSets = new Set<number>();
  readonly #builder: SegmentBuilder;
  #segments: Segment[] = [];

  /** Random and kept secret. */
  constructor(seed: number) {
    this.terms = new TermTable(seed);
    this.#builder = new SegmentBuilder(this.terms);
  }

  get segments(): readonly Segment[] {
    return this.#segments;
  }

  get pages(): number {
    return this.#segments.reduce((sum, { livePages }) => sum + livePages, 0);
  }

  get byteLength(): number {
    const tables = this.terms.byteLength + this.hosts.byteLength + this.groups.byteLength;
    return this.#segments.reduce((sum, { byteLength }) => sum + byteLength, tables);
  }

  /** Adds a page that the index does not have; it can be found after `seal`, or once this many have been added. */
  add(page: IndexedPage): void {
    const { preferenceSet } = page;
    if (preferenceSet !== null && !this.uses.has(preferenceSet)) this.newSets.add(preferenceSet);
    this.#builder.add(
      {
        hostHash: page.hostHash,
        urlHash: page.urlHash,
        host: this.hosts.add(page.host),
        language: this.languages.add(page.language),
        configuration: this.configurations.add(page.configuration),
        crawler: this.crawlers.add(String(page.crawlerId)),
        publishedS: page.publishedS ?? Number.NaN,
        fetchedS: page.fetchedS,
        linkingHosts: page.linkingHosts,
        isLaterCopy: page.isLaterCopy,
        textGroup: this.groups.add(page.textGroup),
        preferenceSet: page.preferenceSet ?? 0,
        // Few are known; in a table full of others, the rest have no known type.
        contentType: Math.min(255, this.contentTypes.add(page.contentType)),
      },
      page,
    );
    if (this.#builder.isFull) this.seal();
  }

  seal(): void {
    if (this.#builder.size > 0) this.#segments.push(this.#builder.build());
  }

  remove(hostHash: bigint, urlHash: bigint): void {
    for (const segment of this.#segments) segment.remove(hostHash, urlHash);
  }

  /**
   * Joins segments where there are several of a size, in slices of milliseconds between which searches may run. No pages may
   * be removed between them. Returns false if there was nothing to join.
   */
  *joinSome(): Generator<void, boolean> {
    const some = worthJoining(this.#segments);
    if (some.length === 0) return false;
    const one = yield* joined(some);
    this.#segments = this.#segments.filter((segment) => !some.includes(segment));
    if (one.size > 0) this.#segments.push(one);
    return true;
  }
}

/** Those that have lost most, one by one; otherwise the smallest size of which there are enough. */
function worthJoining(segments: readonly Segment[]): readonly Segment[] {
  const hollow = segments.find(({ size, livePages }) => size - livePages > lostShare * size);
  if (hollow !== undefined) return [hollow];
  const bySize = new Map<number, Segment[]>();
  for (const segment of segments) {
    if (segment.livePages > segmentPages / 2) continue;
    const size = Math.floor(Math.log(1 + segment.livePages) / Math.log(joinedAtOnce));
    const known = bySize.get(size);
    if (known === undefined) bySize.set(size, [segment]);
    else known.push(segment);
  }
  const sizes = [...bySize].filter(([, some]) => some.length >= joinedAtOnce).sort(([a], [b]) => a - b);
  return withinOne(sizes[0]?.[1] ?? []);
}

/** As many as fit into one segment. */
function withinOne(segments: readonly Segment[]): readonly Segment[] {
  const some: Segment[] = [];
  let pages = 0;
  for (const segment of [...segments].sort((a, b) => a.livePages - b.livePages)) {
    if (pages + segment.livePages > segmentPages) break;
    pages += segment.livePages;
    some.push(segment);
  }
  return some.length > 1 ? some : [];
}
