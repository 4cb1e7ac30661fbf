/** Asks a folder's running crawler over its control socket, with limits on the answer's size and time. */
import { type ClientRequest, request } from "node:http";
import { NearcrawlError } from "#core/errors";
import { openControlPath } from "./control-server.ts";

const answerMs = 5000;
const mostAnswerBytes = 1024 * 1024;

/** Exit code 1: the socket exists but may not be used, or the answer is invalid. */
export class ControlError extends NearcrawlError {
  readonly code = "NC_CONTROL";
}

export interface Asked {
  readonly method: "GET" | "POST";
  /** Includes the query. */
  readonly path: string;
}

/** Returns null when nobody listens, so no crawler runs. Throws a ControlError. */
export async function askCrawler(home: string, { method, path }: Asked): Promise<string | null> {
  const control = openPathOrNull(home);
  if (control === null || control.path === null) return null;
  try {
    const answer = await exchange(request({ socketPath: control.path, method, path, agent: false }));
    if (answer.status === 200) return answer.text;
    throw new ControlError(`the crawler answered ${answer.status}: ${answer.text.slice(0, 300)}`);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ECONNREFUSED" || code === "ENOTSOCK") return null;
    if (code === "EACCES" || code === "EPERM")
      throw new ControlError(
        `${home}/control.sock belongs to another user: run this as the crawler's user, or as root`,
        { cause: error },
      );
    if (error instanceof ControlError) throw error;
    throw new ControlError(`the crawler does not answer: ${(error as Error).message}`, { cause: error });
  } finally {
    control.close();
  }
}

/** Returns null when the folder does not exist. */
function openPathOrNull(home: string): ReturnType<typeof openControlPath> | null {
  try {
    return openControlPath(home);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw new ControlError(`${home} cannot be opened: ${(error as Error).message}`, { cause: error });
  }
}

function exchange(asking: ClientRequest): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(
      () => asking.destroy(new Error(`no answer within ${answerMs / 1000} s`)),
      answerMs,
    );
    const fail = (error: Error) => {
      clearTimeout(late);
      reject(error);
    };
    asking.on("error", fail).on("response", (response) => {
      const pieces: Buffer[] = [];
      let bytes = 0;
      response
        .on("data", (piece: Buffer) => {
          bytes += piece.length;
          pieces.push(piece);
          if (bytes > mostAnswerBytes) asking.destroy(new Error(`more than ${mostAnswerBytes} bytes`));
        })
        .on("error", fail)
        .on("end", () => {
          clearTimeout(late);
          resolve({ status: response.statusCode ?? 0, text: Buffer.concat(pieces).toString("utf8") });
        });
    });
    asking.end();
  });
}
