/** Explains that another coordinator crawls a URL. */
import { type Standing, stop } from "#core/explanation";
import { howMany, instantWords } from "#core/format";

export interface ForeignOwner {
  /** The coordinator to which the URL goes next. */
  readonly kind: "parent" | "child";
  readonly name: string;
  /** The child's claim that covers the URL (`.gr`); null if the parent decides. */
  readonly claim: string | null;
  /** What this coordinator owns if it has a parent. */
  readonly own: readonly string[];
  /** Null if the URL was not found here, or if the question was about a host. */
  readonly url: ForeignUrlState | null;
}

export interface ForeignUrlState {
  readonly waitsSince: string | null;
  readonly underWay: boolean;
  /** When the other side last confirmed the URL. */
  readonly toldAt: string | null;
}

export function ownerLines(owner: ForeignOwner | null | undefined): Standing[] {
  if (!owner) return [];
  return [stop("other-coordinator", `${whoseWords(owner)} ${stateWords(owner)}`)];
}

function whoseWords({ kind, name, claim, own }: ForeignOwner): string {
  if (kind === "child")
    return `It belongs to coordinator ${name}${claim === null ? "" : ` (${claim})`}, below this one.`;
  const owned = own.slice(0, 5).join(", ");
  return (
    "It belongs to another coordinator: this one owns " +
    `${owned}${own.length > 5 ? ` and ${howMany(own.length - 5, "other claim")}` : ""}, and its ` +
    `parent ${name} knows whose it is.`
  );
}

function stateWords({ kind, url }: ForeignOwner): string {
  const way = kind === "parent" ? "up" : "down";
  if (url === null) return `Once it is found here, it is sent ${way}.`;
  if (url.toldAt !== null) return `It was sent ${way} at ${instantWords(url.toldAt)}.`;
  if (url.underWay) return `It is being sent ${way}, and not acknowledged yet.`;
  return `It waits to be sent ${way}${url.waitsSince === null ? "" : `, since ${instantWords(url.waitsSince)}`}.`;
}
