/** What a room gives to the coordinator that runs it. Nothing of it is listed a second time: main goes through the rooms. */
import type { CrawlerEvents } from "./run/gateway/gateway-settings.ts";

/** From the coordinator's start to its end, in this order; whatever a room leaves out, it has no part in. */
export interface Room extends CrawlerEvents {
  /** Before anybody is answered. A coordinator does not start where it fails. */
  begin?(): Promise<void>;
  /** Follows what others change in the database, and does its jobs by the clock, from now on. */
  start?(): void | Promise<void>;
  /** Nobody is waited for any longer, and what is under way is given up. */
  close?(): void;
  /** Resolves when nothing of it runs; also where it was never started. */
  stop?(): Promise<void>;
}
