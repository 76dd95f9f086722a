/** What the server tells of an error beside its code, in google.rpc's details. */
import type { ConnectError } from '@connectrpc/connect';

/** The parts that people read, as the gateway tells them beside the encoded ones. */
interface Told {
  readonly reason?: string;
  readonly fieldViolations?: readonly Violation[];
}

export interface Violation {
  readonly field?: string;
  readonly description?: string;
}

const told = (error: ConnectError): Told[] =>
  error.details.flatMap((detail) => ('debug' in detail && detail.debug !== undefined ? [detail.debug as Told] : []));

/** Why a call failed, for programs: `UNKNOWN_FIELD`; empty when the server didn't say. */
export const reason = (error: ConnectError): string => told(error).find((detail) => detail.reason)?.reason ?? '';

/** Everything that is wrong with a request. */
export const violations = (error: ConnectError): Violation[] => told(error).flatMap((detail) => detail.fieldViolations ?? []);
