/**
 * What pg, PgBouncer and Postgres say in words alone. Where they give a code, the code decides; these words are matched
 * because nothing else tells the cases apart, and stand in one place because another version may word them otherwise.
 */

/** pg's own errors of a connection that is gone. They have no code. */
export const lostWords =
  /^(Connection terminated|timeout exceeded when trying to connect|timeout expired|Client has encountered|Client was closed)/;

/** pg and pg-pool, of a connection or an answer that did not come in time. They give no code. */
export const timeoutWords = /timeout/i;

/** pg, of a server that closed the connection before it answered. */
export const closedWords = /terminated unexpectedly/;

/** Postgres that recovers; the same SQLSTATE (57P03) is that of one that starts or stops. */
export const recoveringWords = /not yet accepting connections/;

/** PgBouncer, of too many connections. Postgres has SQLSTATE 53300 for it. */
export const usedUpWords = /no more connections allowed/i;

/** The system's words for a full disk, which Postgres passes on under various SQLSTATEs. */
export const fullDiskWords = /No space left on device/;

/* The log of a Postgres that did not start, which has no codes. */

/**
 * Failures that pass by themselves: another process starts it too (and may just be letting initdb into the home), or the
 * last server's backends are still going. A folder that stays closed is named before the start.
 */
export const passingFailure =
  /could not access directory|lock file ".*" already exists|shared memory block .* in use|another (server|postmaster)|Address already in use|terminating/i;

/** The data folder is not to be recovered: no other start would go better. */
export const lastingFailure =
  /startup process \(PID \d+\) (exited with exit code|was terminated by signal 6)/;

/** Its first group is the name of the lock file. */
export const emptyLock = /lock file "([^"]+)" is empty/;
