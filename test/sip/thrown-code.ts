import { SipError } from '../../sip/sip-error.ts';

/** Code of the SipError that `act` throws. */
export function codeOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    return error instanceof SipError ? error.code : `not a SipError: ${String(error)}`;
  }
  return 'nothing thrown';
}
