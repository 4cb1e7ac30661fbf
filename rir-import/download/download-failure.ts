/**
 * Explains why one try of a download failed; `again` says whether another may help. fetch-source.ts catches it and
 * makes it part of that source's result.
 */
export class DownloadFailure extends Error {
  /** `later`: a temporary fault. `once`: one more try may help. `never`: the same answer would come again. */
  readonly again: "later" | "once" | "never";
  readonly retryAfterSeconds: number | null;

  constructor(
    again: DownloadFailure["again"],
    reason: string,
    options: ErrorOptions & { readonly retryAfterSeconds?: number | null } = {},
  ) {
    super(reason, options);
    this.again = again;
    this.retryAfterSeconds = options.retryAfterSeconds ?? null;
  }
}

/** Converts any error: network faults may be temporary, disk and TLS faults are not. */
export function downloadFailure(error: unknown): DownloadFailure {
  if (error instanceof DownloadFailure) return error;
  const cause = causeOf(error);
  const code = String((cause as { code?: unknown }).code ?? "");
  const lasting =
    /^(ENOSPC|EDQUOT|EROFS|EACCES|EPERM|ENOENT|ENOTDIR|EISDIR|ERR_TLS|ERR_SSL|CERT_|UNABLE_TO|SELF_SIGNED|DEPTH_ZERO|ERR_INVALID|UND_ERR_INVALID)/;
  return new DownloadFailure(lasting.test(code) ? "never" : "later", wordsOf(cause, code), { cause: error });
}

/** Node wraps the faults of several addresses into one AggregateError without a message. */
function causeOf(error: unknown): Error {
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return error.errors[0];
  return error instanceof Error ? error : new Error(String(error));
}

function wordsOf(error: Error, code: string): string {
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return `the name cannot be resolved (${error.message})`;
  if (code === "ENOSPC" || code === "EDQUOT") return `the disk is full (${error.message})`;
  return error.message === "" ? code : error.message;
}
