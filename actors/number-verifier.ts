import type { Tx } from '../storage/database.ts';
import type { NumberVerification, StartVerificationInput } from '../storage/queries/number-verifications.ts';

/** Verifies by a call that a trunk receives the calls to a number. Implemented in `number-verifier.actor.ts`. */
export interface NumberVerifier {
  /**
   * Calls the number over a trunk of the operator. Resolves when that is stored, long before the call ends; a verification of this
   * number and trunk that is under way is returned in place of a new one.
   * @param record runs in the transaction of a new verification
   * @throws TandemError as `startVerification` does
   */
  start(
    request: Pick<StartVerificationInput, 'workspaceId' | 'apiKeyId' | 'userId' | 'e164' | 'trunkId'>,
    record: (tx: Tx, verification: NumberVerification) => Promise<void>,
  ): Promise<NumberVerification>;
}
