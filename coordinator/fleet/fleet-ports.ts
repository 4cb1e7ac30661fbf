/** What the fleet's pages, API and actions work with, and the answers that they share. */
import type { FleetKeys, Secrets, SignInLinkStore } from "#core/access-types";
import type { CrawlerId } from "#core/ids";
import type { IncidentStore } from "#core/incidents";
import type { InvitingCoordinator } from "../access/invitations.ts";
import type { HeirLine } from "../balance/successors.ts";
import type { BudgetChange, ChangedBudget } from "../crawlers/crawler.ts";
import type { CrawlerStore } from "../crawlers/crawler-store.ts";
import type { InvitationStore } from "../crawlers/invitation-store.ts";
import type { MoveStore } from "../crawlers/move-store.ts";
import type { DomainSetStore } from "../domain-sets/domain-set-store.ts";
import type { FrontierStore } from "../frontier/frontier-store.ts";
import type { ComplaintStore } from "../opt-outs/complaint-store.ts";
import type { OptOutMarks } from "../opt-outs/mark-writes.ts";
import type { OptOutStore } from "../opt-outs/store.ts";
import type { OverviewReads } from "../overview/overview-reads.ts";
import type { ReleaseFleetStore } from "../releases/fleet-store.ts";
import type { ReleaseStore } from "../releases/release-store.ts";
import type { FleetReads } from "./crawler-reads.ts";
import type { InvitationProgress } from "./invitation-api.ts";

export interface FleetPorts {
  readonly reads: FleetReads;
  readonly overview: OverviewReads;
  readonly crawlers: Pick<CrawlerStore, "drain" | "resume">;
  readonly keys: FleetKeys;
  readonly frontier: Pick<FrontierStore, "returnLeasesOf">;
  readonly invitations: InvitationStore;
  /** Null: there is no invitation of this number. */
  readonly invitationProgress: (invitationId: number, now: Date) => Promise<InvitationProgress | null>;
  readonly incidents: Pick<IncidentStore, "list">;
  readonly moves: Pick<MoveStore, "ask">;
  readonly releases: Pick<ReleaseStore, "list" | "setStage">;
  readonly releaseFleet: Pick<ReleaseFleetStore, "counts" | "docks" | "watched">;
  readonly optOuts: Pick<OptOutStore, "list" | "request" | "preview" | "confirm" | "lift">;
  readonly marks: OptOutMarks;
  readonly complaints: Pick<ComplaintStore, "add" | "list" | "close">;
  readonly links: Pick<SignInLinkStore, "issue">;
  /** Null: there is no crawler of that name. */
  readonly grantBudget: (name: string, change: BudgetChange) => Promise<ChangedBudget | null>;
  readonly domainSets: Pick<DomainSetStore, "of" | "give">;
  /** False: there is no crawler of that name. */
  readonly restoreTrust: (name: string, now: Date) => Promise<boolean>;
  /** To whom its subnets would go as things stand. */
  readonly succession: (crawlerId: CrawlerId) => Promise<readonly HeirLine[]>;
  /** What invitations pin. Throws a UsageError when partners could not reach the coordinator where it listens. */
  readonly coordinator: () => Promise<InvitingCoordinator>;
  /** Where people reach the pages; null: no coordinator has said so yet. */
  readonly webUrl: () => Promise<string | null>;
  readonly secrets: Secrets;
}
