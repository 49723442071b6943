import { randomInt, randomUUID } from 'node:crypto';
import { TandemError } from '../machines/errors.ts';
import type { RemoteMedia } from '../machines/events.ts';
import { isRepeatedPress, type KeyPresses, type PressedKey, withPress } from '../machines/key-presses.ts';
import type { MediaPlane, MediaSession } from '../media/media-plane.ts';
import { within } from '../runtime/waiting.ts';
import type { InboundCall } from '../sip/sip-gateway.ts';
import { inTransaction, type Sql } from '../storage/database.ts';
import type { CallingLimits } from '../storage/queries/calling-rules.ts';
import {
  type ClaimedNumber,
  concludeFailed,
  concludeVerified,
  findCallingVerification,
  listenFor,
  startVerification,
  type VerificationCall,
  type VerificationFailure,
} from '../storage/queries/number-verifications.ts';
import { getTrunkById } from '../storage/queries/trunks.ts';
import type { Logger } from './logger.ts';
import type { NumberVerifier } from './number-verifier.ts';
import { dialOverTrunk, type TrunkDialingParts, trunkEndpoint } from './trunk-dialing.ts';
import type { TrunkWatch } from './trunk-watch.ts';
import { WatchedLeg } from './watched-leg.ts';

export interface NumberVerifierOptions extends TrunkDialingParts {
  trunks: Pick<TrunkWatch, 'isDown' | 'dialing'>;
  sql: Sql;
  mediaPlane: MediaPlane;
  /** Limits of the operator. */
  callingLimits: CallingLimits;
  logger: Logger;
}

/** The verifier, with the part that takes the calls that return the codes. */
export interface NodeNumberVerifier extends NumberVerifier, AsyncDisposable {
  /** Returns the claim that a call to this number may verify; null for most numbers. */
  claimOf(e164: string): Promise<ClaimedNumber | null>;
  /** Answers a call over the claim's trunk and listens for the code. Resolves when the call has ended. */
  listen(call: InboundCall, claim: ClaimedNumber): Promise<void>;
}

const PARTY = 'peer';
const CODE_DIGITS = 8;
/** The code is sent three times. A caller who may press more could guess it. */
const MOST_DIGITS = 5 * CODE_DIGITS;
const KEY_MS = 120;
const RING_MS = 30_000;
const ANSWER_MS = 10_000;
/** The code is sent three times, which takes 14 s. */
const LISTEN_MS = 30_000;
/** Time for a peer to answer our BYE. */
const SETTLE_MS = 2_000;

/**
 * Verifies that a trunk receives a number's calls. It calls the number over a trunk of the operator and sends a secret
 * code as DTMF. If the number belongs to the trunk, the telephone network routes this call back over it, with the code.
 * The owner of a trunk can forge a call, but does not know the code.
 */
export function createNumberVerifier(options: NumberVerifierOptions): NodeNumberVerifier {
  const { sql, sip, mediaPlane, trunks, clock, logger } = options;
  const closing = new AbortController();
  const running = new Set<Promise<void>>();
  const now = () => new Date(clock.now());

  /** Opens a session with one leg, and ends both after `work`. */
  async function withLeg<Result>(
    sessionId: string,
    onPress: (press: PressedKey) => void,
    work: (leg: WatchedLeg, session: MediaSession, signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const ended = new AbortController();
    const leg = new WatchedLeg((digit) => onPress({ leg: PARTY, digit, by: 'info' }));
    const session = await mediaPlane.openSession({
      sessionId,
      parties: [PARTY],
      signal: closing.signal,
      onEvent: (event) => {
        if (event.type === 'dtmf.pressed') onPress(event);
      },
    });
    try {
      return await work(leg, session, AbortSignal.any([closing.signal, ended.signal]));
    } finally {
      if (leg.dialog !== null) {
        leg.dialog.hangup('NORMAL_CLEARING');
        await within(leg.over, { ms: SETTLE_MS, clock });
      }
      ended.abort();
      await session.close();
    }
  }

  async function connect(leg: WatchedLeg, session: MediaSession, media: RemoteMedia): Promise<void> {
    leg.onMedia = (changed) => void session.connectParty(PARTY, changed).catch(() => undefined);
    await session.connectParty(PARTY, media);
    // Media gateways behind NAT send only after receiving something.
    await session.setRouting({ receives: { [PARTY]: 'silence' }, watched: [], pressing: [PARTY] });
  }

  /** Calls the number and sends the code. Null on success. */
  async function press({
    verification,
    code,
    callerId,
    trunkId,
  }: VerificationCall): Promise<VerificationFailure | null> {
    const trunk = await getTrunkById(sql, trunkId);
    if (trunk === null) return 'refused';
    const ignore = () => undefined;
    return await withLeg(`${verification.id}-out`, ignore, async (leg, session, signal) => {
      leg.dialog = dialOverTrunk(trunk, options, {
        ...{ callerId, calledNumber: verification.e164, localMedia: session.localOf(PARTY) },
        ...{ callId: verification.id, leg: 'verification', signal, onEvent: leg.take, onError: leg.fail },
        isWanted: () => !signal.aborted,
      });
      const answer = await leg.answered({ ms: RING_MS, clock, signal });
      if ('failure' in answer) return answer.failure;
      await connect(leg, session, answer.media);
      const digits = `W${`WW${code}`.repeat(3)}WW`;
      await Promise.race([session.sendDigits(PARTY, { digits, durationMs: KEY_MS }), leg.over]);
      return null;
    });
  }

  async function run(call: VerificationCall): Promise<void> {
    const { id } = call.verification;
    try {
      const failure = await press(call);
      await concludeFailed(sql, { id, failure: failure ?? 'code_not_heard', now: now() });
    } catch (error) {
      if (!closing.signal.aborted) logger.warn({ verificationId: id, err: error }, 'verification call failed');
      await concludeFailed(sql, { id, failure: 'interrupted', now: now() });
    }
  }

  async function verified(id: string): Promise<void> {
    try {
      if (await concludeVerified(sql, { id, now: now() })) logger.info({ verificationId: id }, 'number verified');
    } catch (error) {
      if (!(error instanceof TandemError)) throw error;
      // The trunk no longer lists the number, or the operator has verified it for another trunk meanwhile.
      await concludeFailed(sql, { id, failure: 'refused', now: now() });
    }
  }

  function follow(work: Promise<void>): Promise<void> {
    const followed = work.finally(() => running.delete(followed));
    running.add(followed);
    return followed;
  }

  return {
    async start(request, record) {
      if (sip.state !== 'connected' || closing.signal.aborted) {
        throw new TandemError('CARRIER_LINE_DOWN', 'The SIP server is not reachable at the moment.', {
          retryAfterS: 10,
        });
      }
      const { verification, call } = await inTransaction(sql, async (tx) => {
        const started = await startVerification(tx, {
          ...request,
          id: randomUUID(),
          code: Array.from({ length: CODE_DIGITS }, () => randomInt(10)).join(''),
          limits: options.callingLimits,
          isLineDown: trunks.isDown,
          now: now(),
        });
        if (started.call !== null) await record(tx, started.verification);
        return started;
      });
      if (call !== null) {
        const warn = (error: unknown) =>
          logger.error({ err: error }, 'outcome of a number verification could not be stored');
        void follow(run(call).catch(warn));
      }
      return verification;
    },

    claimOf: (e164) => findCallingVerification(sql, { e164, now: now() }),

    async listen(call, { verificationId: id, trunkId }) {
      const trunk = await getTrunkById(sql, trunkId);
      const code = trunk && (await listenFor(sql, id));
      if (trunk === null || code === null || closing.signal.aborted) return call.refuse('UNALLOCATED_NUMBER');
      let digits = '';
      let taken = 0;
      let presses: KeyPresses = {};
      const received = Promise.withResolvers<'received'>();
      const take = (press: PressedKey) => {
        const isRepeated = isRepeatedPress(presses, press);
        presses = withPress(presses, press);
        if (isRepeated || taken++ >= MOST_DIGITS) return;
        digits = `${digits}${press.digit}`.slice(-CODE_DIGITS);
        if (digits === code) received.resolve('received');
      };
      const work = withLeg(`${id}-in-${randomUUID()}`, take, async (leg, session, signal) => {
        leg.dialog = call.answer({
          trunk: trunkEndpoint(trunk, options.secrets, null),
          localMedia: session.localOf(PARTY),
          ...{ callId: id, leg: 'verification', signal, onEvent: leg.take },
        });
        const answer = await leg.answered({ ms: ANSWER_MS, clock, signal });
        if ('failure' in answer) return;
        await connect(leg, session, answer.media);
        const first = await within(Promise.race([received.promise, leg.over]), { ms: LISTEN_MS, clock, signal });
        if (first === 'received') await verified(id);
      });
      await follow(work);
    },

    async [Symbol.asyncDispose]() {
      closing.abort();
      await Promise.allSettled(running);
    },
  };
}
