import type { Tx } from '../storage/database.ts';
import type { NumberVerification, StartVerificationInput } from '../storage/queries/number-verifications.ts';

/** Verifies by a call that a trunk receives a number's calls. Implemented in `number-verifier.actor.ts`. */
export interface NumberVerifier {
  /**
   * Starts a call to the number over a trunk of the operator. Resolves once that is stored, long before the call ends.
   * Returns a running verification of the same number and trunk instead of a new one.
   * @param record runs in the transaction of a new verification
   * @throws TandemError as `startVerification` does
   */
  start(
    request: Pick<StartVerificationInput, 'workspaceId' | 'apiKeyId' | 'userId' | 'e164' | 'trunkId'>,
    record: (tx: Tx, verification: NumberVerification) => Promise<void>,
  ): Promise<NumberVerification>;
}
