/** What a run says of the embedded Postgres that dies under it; it goes on, unless that dies too often. */
import type { DatabaseError } from "#core/errors";
import { keptAsideWords, restartWords, type ServerEvent } from "#db/connect";
import type { RunVoice } from "./run-voice.ts";

export class ServerWatch {
  readonly #voice: Pick<RunVoice, "note">;
  readonly #givenUp: Promise<never>;
  /** Resolves when the server is given up. */
  readonly ended: Promise<void>;
  #giveUp: (error: DatabaseError) => void = () => {};

  constructor(voice: Pick<RunVoice, "note">) {
    this.#voice = voice;
    this.#givenUp = new Promise((_, reject) => {
      this.#giveUp = reject;
    });
    this.ended = this.#givenUp.catch(() => {});
  }

  readonly onServer = (event: ServerEvent): void => {
    if (event.type === "kept-aside") this.#voice.note(keptAsideWords(event.folder));
    else if (event.type === "restarted") this.#voice.note(restartWords(event.times));
    else this.#giveUp(event.error);
  };

  /** What the work comes to; rejects as soon as the server is given up. */
  async over<T>(work: Promise<T>): Promise<T> {
    return await Promise.race([work, this.#givenUp]);
  }
}
