/** One place in the generated hierarchy: a range, where it came from and what it may draw its fields from. */
import type { AddressBlock } from "./address-blocks.ts";
import type { Life } from "./slot-life.ts";

/**
 * `block`: what IANA gave the registry, as the registry's own object. `allocation`: what the statistics list.
 * `assignment`: everything below. `crossing`: one of two ranges that overlap without holding each other.
 */
export type SlotKind = "block" | "allocation" | "assignment" | "crossing";

/** First and last unit, both included; units as in AddressBlock, counted for IPv6 from the block's start. */
export interface Span {
  readonly first: number;
  readonly last: number;
  /** log2 of its size where it is an aligned block, else −1. */
  readonly bits: number;
}

export interface Slot {
  readonly kind: SlotKind;
  readonly block: AddressBlock;
  readonly span: Span;
  /** A second block of the same net, right behind the first (ARIN). */
  readonly secondSpan: Span | null;
  /** A free block beside an allocation, that only the statistics know. */
  readonly spareSpan: Span | null;
  /** IPv6 only: the range is one address, the first of the span's /64. */
  readonly isHost: boolean;
  readonly path: number;
  /** The allocation's organisation, and the country it is registered in; numbers of the registry's lists. */
  readonly organisation: number;
  readonly country: number;
  /** It crosses the slot that comes next. */
  readonly crossesNext: boolean;
  /** Live ranges that hold this one, IANA's block among them. */
  readonly above: number;
  readonly life: Life;
}
