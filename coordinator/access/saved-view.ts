/** Saved views: a page of ours with its filters, under a name that whoever signed in gave it. Each sees only their own. */
import type { Role } from "#core/actor";
import type { Visit } from "../web/access.ts";

export interface SavedView {
  readonly viewId: number;
  readonly name: string;
  /** Of a page here, with its query. */
  readonly path: string;
  readonly savedAt: Date;
}

/** A name alone does not say who it is: an operator's anna is nobody else's anna. */
export interface ViewOwner {
  readonly name: string;
  readonly role: Role;
}

export interface SavedViewStore {
  /** By name. */
  list(owner: ViewOwner): Promise<SavedView[]>;
  /** A name that is taken now leads there. False: there is no room for one more. */
  save(owner: ViewOwner, view: Omit<SavedView, "viewId">): Promise<boolean>;
  /** Its name; null: the owner has no such view. */
  remove(owner: ViewOwner, viewId: number): Promise<string | null>;
}

/** Of one person. */
export const mostSavedViews = 50;

export const longestViewName = 60;

/** Null: nobody has signed in, and a program keeps its own addresses. */
export function ownerOf({ actor, signedInAs }: Visit): ViewOwner | null {
  const { role } = actor;
  if (signedInAs === null || role === "program" || role === "anybody") return null;
  return { name: signedInAs, role };
}

export async function viewsOf(store: SavedViewStore, visit: Visit): Promise<SavedView[]> {
  const owner = ownerOf(visit);
  return owner === null ? [] : await store.list(owner);
}
