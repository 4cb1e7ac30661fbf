/**
 * Whose a URL is, as one coordinator sees it: its child's that owns it; its own; or of somebody above or beside it,
 * which is for its parent to know. The coordinator without a parent owns the rest, so that every URL has one owner
 * (WEB-SAILOR section 4.4). Ownership is a tree: a child owns part of what its parent owns, and no two children own
 * the same.
 */
import { parseAddress } from "#core/ip/address";
import { type Claims, claimOf } from "./claims.ts";

/** The parent's number among the related coordinators; children have the numbers above. */
export const parentId = 0;

/** `here`, or the number of the related coordinator that the URL goes to next. */
export type Owner = "here" | number;

export interface Relatives {
  /** What this coordinator owns; null: it has no parent, and owns the rest. */
  readonly own: Claims | null;
  readonly children: readonly { readonly peerId: number; readonly name: string; readonly claims: Claims }[];
}

export interface Whereabouts {
  /** As in `UrlKey`. */
  readonly host: string;
  /** The first of its addresses; null: not known yet, and then nobody else has it by an address block. */
  readonly address: string | null;
}

/** After so many coordinators a URL stays where it is: settings that contradict each other pass nothing round for ever. */
export const mostHops = 8;

/** `from`: who sent it; `here` for what this coordinator found by itself. */
export function ownerOf(where: Whereabouts, { own, children }: Relatives, from: Owner): Owner {
  const child = children.find(({ claims }) => claimOf(claims, where) !== null);
  if (child !== undefined) return child.peerId;
  if (own === null || claimOf(own, where) !== null) return "here";
  // Names resolve differently by place: who is given a host by its address keeps it.
  const isKnown = where.address !== null || parseAddress(where.host) !== null;
  if (own.kind === "blocks" && (!isKnown || from === parentId)) return "here";
  return parentId;
}

/** Why `childId` may not be below a coordinator, or null. `chain`: of that coordinator, itself first, then upward. */
export function cycleFault(childId: string, chain: readonly string[]): string | null {
  const at = chain.indexOf(childId);
  if (at === 0) return "it is this coordinator itself, or runs with a copy of its database";
  if (at > 0) return `it is above this coordinator already (${at} ${at === 1 ? "step" : "steps"} up)`;
  return null;
}
