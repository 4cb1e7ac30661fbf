/** Log lines are JSON, one per event, with a fixed message and fields named as in the code. The message never holds a value. */
import pino, { type DestinationStream } from "pino";

export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export function createLog(options: { level: string; name: string; destination?: DestinationStream }): Log {
  const settings = {
    level: options.level,
    base: { name: options.name },
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { error: pino.stdSerializers.err },
  };
  return options.destination ? pino(settings, options.destination) : pino(settings);
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
