/** How many long files are being sent: each makes work for as long as its reader takes. */
import type { Readable } from "node:stream";

const mostFilesAtOnce = 2;
/** A million rows are 100 MB; who reads more slowly than 170 KB/s keeps others waiting. */
const mostFileMs = 600_000;

/** To whom there is no turn for. */
export const noFileTurn = `${mostFilesAtOnce} lists are being sent already. Try again when one has ended.`;

export class FileTurns {
  #sending = 0;

  /** False: as many as may be sent at once are. */
  take(): boolean {
    if (this.#sending >= mostFilesAtOnce) return false;
    this.#sending += 1;
    return true;
  }

  /** Gives the turn back when the stream has ended, however. */
  until(stream: Readable): Readable {
    const cut = setTimeout(() => stream.destroy(new Error("it was read too slowly")), mostFileMs).unref();
    return stream.once("close", () => {
      clearTimeout(cut);
      this.#sending -= 1;
    });
  }
}
