/**
 * Whether a crawler is still there, on a connection that may have died without a word (a half-open TCP
 * connection sends no FIN): it vanished when three heartbeats in a row have not come, and not before.
 *
 * Bytes of a long message under way count as signs, too, but not for ever.
 *
 *   last sign ─ H ─ missed ─ H ─ missed ─ H ─ missed ─ H/4 ─ vanished        before the fourth is due
 *
 * Time is counted in ticks of our own loop and not by a clock: where this process stood still itself, what
 * the crawlers sent meanwhile waits in the sockets and is read first.
 */

export interface HeartbeatWatchSettings {
  /** How often the crawler is to send one. */
  readonly heartbeatMs: number;
  /** Bytes that have come over the connection so far. */
  readonly bytesRead: () => number;
  /** True while we do not read from it, so that it cannot be heard. */
  readonly isHeld: () => boolean;
  /** Once a heartbeat: time for a sign of ours. */
  readonly onBeat: () => void;
  /** Called once. */
  readonly onVanished: () => void;
}

const missedHeartbeats = 3;
const ticksPerHeartbeat = 8;
/** The third heartbeat may be late by a quarter of the interval. */
const lateTicks = 2;
/** A message that is under way for so long never ends: the longest takes four minutes at 256 kbit/s. */
const longestMessageHeartbeats = 30;
/** So many bytes between two ticks are a long message under way, more than answers to pings. */
const messageUnderWayBytes = 256;

export class HeartbeatWatch {
  readonly #settings: HeartbeatWatchSettings;
  readonly #timer: NodeJS.Timeout;
  #ticks = 0;
  #silentTicks = 0;
  /** Since the last whole message, while we read. */
  #wordlessTicks = 0;
  #bytesRead: number;

  constructor(settings: HeartbeatWatchSettings) {
    this.#settings = settings;
    this.#bytesRead = settings.bytesRead();
    this.#timer = setInterval(() => this.#tick(), settings.heartbeatMs / ticksPerHeartbeat);
  }

  /** A message came. */
  heard(): void {
    this.#silentTicks = 0;
    this.#wordlessTicks = 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    this.#ticks += 1;
    if (this.#ticks % ticksPerHeartbeat === 0) this.#settings.onBeat();
    const bytesRead = this.#settings.bytesRead();
    const isHeld = this.#settings.isHeld();
    const isHeard = bytesRead - this.#bytesRead >= messageUnderWayBytes || isHeld;
    this.#bytesRead = bytesRead;
    this.#silentTicks = isHeard ? 0 : this.#silentTicks + 1;
    this.#wordlessTicks = isHeld ? 0 : this.#wordlessTicks + 1;
    const isSilent = this.#silentTicks > missedHeartbeats * ticksPerHeartbeat + lateTicks;
    if (!isSilent && this.#wordlessTicks <= longestMessageHeartbeats * ticksPerHeartbeat) return;
    this.stop();
    this.#settings.onVanished();
  }
}
