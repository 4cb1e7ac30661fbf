/** What the disk says no to, as an error that names the file: not there, not allowed, not readable. */
import { SourceFileError } from "#core/errors";

export function readError(path: string, error: unknown): SourceFileError {
  const { code, message } = error as NodeJS.ErrnoException;
  const reason = code === "ENOENT" ? "no such file or folder" : `cannot be read: ${message}`;
  return new SourceFileError(path, null, reason, { cause: error });
}
