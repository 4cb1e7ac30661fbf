/**
 * Server-sent events for the overview: every two seconds, while somebody listens, the regions of the page
 * that have changed. The overview is made once a tick, however many listen; a listener that does not keep
 * up is let go (its browser comes back).
 */
import type { ServerResponse } from "node:http";

export const maxListeners = 100;
const tickMs = 2000;

/** Bytes that may wait for a slow listener. */
const maxBehindBytes = 1_000_000;

/** Then the browser comes back, and is asked again who it is: who was signed out hears no more. */
const mostStreamMs = 300_000;

export class LiveEvents {
  readonly #render: () => Promise<Readonly<Record<string, string>>>;
  readonly #onError: (error: unknown) => void;
  readonly #listeners = new Set<ServerResponse>();
  #sent: Readonly<Record<string, string>> = {};
  #timer: NodeJS.Timeout | null = null;
  #rendering = false;

  /** `render` gives the regions as HTML by name. */
  constructor(render: () => Promise<Readonly<Record<string, string>>>, onError: (error: unknown) => void) {
    this.#render = render;
    this.#onError = onError;
  }

  get full(): boolean {
    return this.#listeners.size >= maxListeners;
  }

  /**
   * Takes over a response whose head is written; the first event holds every region, as the last tick made them:
   * whoever comes and goes a hundred times makes nobody work.
   */
  listen(response: ServerResponse): void {
    this.#listeners.add(response);
    const end = setTimeout(() => this.#letGo(response), mostStreamMs).unref();
    response.on("close", () => {
      clearTimeout(end);
      this.#forget(response);
    });
    response.write("retry: 3000\n\n");
    this.#timer ??= setInterval(() => void this.tick(), tickMs).unref();
    if (Object.keys(this.#sent).length === 0) void this.tick();
    else response.write(eventOf(this.#sent));
  }

  /** Sends what has changed since the last tick. */
  async tick(): Promise<void> {
    if (this.#rendering || this.#listeners.size === 0) return;
    this.#rendering = true;
    try {
      const regions = await this.#render();
      const changed = Object.entries(regions).filter(([name, markup]) => this.#sent[name] !== markup);
      this.#sent = this.#listeners.size === 0 ? {} : regions;
      this.#send(eventOf(Object.fromEntries(changed)));
    } catch (error) {
      this.#onError(error);
    } finally {
      this.#rendering = false;
    }
  }

  /** Ends every stream; the server may close. */
  close(): void {
    for (const response of this.#listeners) response.end();
    this.#listeners.clear();
    this.#stop();
  }

  #send(event: string): void {
    for (const response of this.#listeners) {
      if (response.writableLength > maxBehindBytes) response.destroy();
      else response.write(event);
    }
  }

  #letGo(response: ServerResponse): void {
    this.#forget(response);
    response.end();
  }

  #forget(response: ServerResponse): void {
    this.#listeners.delete(response);
    if (this.#listeners.size === 0) this.#stop();
  }

  #stop(): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
    // Made when nobody listened, it would be old.
    this.#sent = {};
  }
}

function eventOf(regions: Readonly<Record<string, string>>): string {
  return `event: overview\ndata: ${JSON.stringify({ regions })}\n\n`;
}
