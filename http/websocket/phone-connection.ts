import type { RawData, WebSocket } from 'ws';
import type { ConnectedPhone, PhoneHolder, PhoneOutlet } from '../../actors/phones/phone-desk.ts';
import { TandemError } from '../../machines/errors.ts';
import type { Role } from '../../storage/queries/workspaces.ts';
import { isRevoked, type Principal, roleAllows } from '../auth.ts';
import type { HttpContext } from '../context.ts';
import { abortWithCredentials } from '../credential-watch.ts';
import { rateLimited } from '../rate-limits.ts';
import { toRefusal } from '../refusals.ts';
import { departureOf } from './departure.ts';
import { keepAlive } from './keep-alive.ts';
import { createOutlet, type Outlet } from './outlet.ts';
import { InvalidPhoneMessage, readPhoneMessage } from './phone-messages.ts';
import { errorMessageOf } from './socket-admission.ts';
import { createTokenBucket } from './token-bucket.ts';

export type PhoneConnectionContext = Pick<
  HttpContext,
  'sql' | 'phones' | 'limits' | 'logger' | 'now' | 'heartbeatMs' | 'revocations'
>;

interface PhoneConnectionOptions {
  context: PhoneConnectionContext;
  /** Contains the token. */
  query: URLSearchParams;
  address: string;
  closing: AbortSignal;
}

/** For all messages: a call takes about ten, a key press one. */
const MESSAGES = { capacity: 100, perSecond: 20 };
/** For invalid messages. A client that keeps sending them is disconnected. */
const FAULTS = { capacity: 20, perSecond: 1 };

/** Serves one phone socket. Resolves when it is closed. */
export async function servePhoneConnection(socket: WebSocket, options: PhoneConnectionOptions): Promise<void> {
  const { context, closing } = options;
  const outlet = createOutlet(socket);
  const { gone, left } = departureOf(socket);
  keepAlive(socket, {}, gone);
  // Messages wait until the phone is found, which may be on another node.
  socket.pause();
  try {
    const phone = await connect(outlet, options);
    if (gone.aborted) phone.detach();
    gone.addEventListener('abort', () => phone.detach(), { once: true });
    socket.on('message', messageHandler(phone, { context, outlet, socket }));
    socket.resume();
    await endWithCredentials(phone, { context, outlet, gone });
    const shutDown = () => outlet.close(1012, 'SHUTTING_DOWN');
    closing.addEventListener('abort', shutDown, { once: true, signal: gone });
    if (closing.aborted) shutDown();
  } catch (error) {
    const refusal = toRefusal(error);
    if (refusal.status === 500) context.logger.error({ err: refusal.cause ?? refusal }, 'phone could not be connected');
    const message = errorMessageOf(refusal);
    outlet.send(message);
    outlet.close(refusal.status < 500 ? 1008 : 1011, message.code);
    socket.resume();
  }
  // The ws library terminates a client that does not answer the close.
  await left;
}

/** @throws TandemError UNAUTHORIZED, RATE_LIMITED */
async function connect(outlet: Outlet, { context, query, address }: PhoneConnectionOptions): Promise<ConnectedPhone> {
  const { phones, limits } = context;
  let notices = 0;
  const phoneOutlet: PhoneOutlet = {
    send: (notice) => outlet.send({ id: ++notices, ...notice }),
    close: (code, reason) => outlet.close(code, reason),
  };
  const token = query.get('token');
  const phone =
    token === null
      ? await phones.resume(query.get('resume') ?? '', phoneOutlet)
      : await phones.connect(token, phoneOutlet);
  if (phone !== null) return phone;
  // Limits guessing as over REST.
  const state = await limits.consumeAddress(address);
  if (state.exceeded) throw rateLimited(state);
  throw new TandemError(
    'UNAUTHORIZED',
    'The token is invalid, has been used or has expired. Create one with POST /phone/tokens.',
  );
}

/**
 * Ends the phone with its credentials, even if they ended earlier: after the token was created, or while the phone had
 * no socket.
 */
async function endWithCredentials(
  phone: ConnectedPhone,
  { context, outlet, gone }: { context: PhoneConnectionContext; outlet: Outlet; gone: AbortSignal },
): Promise<void> {
  const principal = principalOf(phone.holder);
  const mayStay = (role: Role) => roleAllows(role, phone.holder.purpose === 'supervise' ? 'admin' : 'writer');
  const ended = new AbortController();
  ended.signal.addEventListener('abort', () => {
    if (gone.aborted) return;
    phone.leave();
    outlet.close(1008, 'AUTH_FAILED');
  });
  abortWithCredentials(context, { principal, ended, mayStay });
  gone.addEventListener('abort', () => ended.abort(), { once: true });
  if (await isRevoked(principal, { sql: context.sql, now: context.now(), mayStay })) ended.abort();
}

/** Restores the principal, because JSON between nodes has no dates. */
function principalOf({ credentials }: PhoneHolder): Principal {
  const principal = credentials as Principal;
  const { expiresAt } = principal;
  return { ...principal, expiresAt: expiresAt === null ? null : new Date(expiresAt) };
}

interface Conversation {
  context: PhoneConnectionContext;
  outlet: Outlet;
  socket: WebSocket;
}

function messageHandler(phone: ConnectedPhone, { context, outlet, socket }: Conversation) {
  const messages = createTokenBucket(MESSAGES);
  const faults = createTokenBucket(FAULTS);

  function cutOff(): void {
    socket.pause();
    outlet.send({ type: 'error', code: 'RATE_LIMITED', message: 'Too many messages. Send fewer per second.' });
    outlet.close(1008, 'RATE_LIMITED');
  }

  function refuse(id: string | number | null, error: unknown): void {
    const refusal = toRefusal(error);
    if (refusal.status === 500) context.logger.error({ err: refusal.cause ?? refusal }, 'phone request failed');
    if (!faults.take()) cutOff();
    else outlet.send({ id, ...errorMessageOf(refusal) });
  }

  return (data: RawData, isBinary: boolean): void => {
    if (socket.readyState !== socket.OPEN) return;
    if (!messages.take()) {
      cutOff();
      return;
    }
    try {
      const { id, request } = readPhoneMessage(isBinary ? '' : (data as Buffer).toString());
      if (!('callId' in request)) {
        outlet.send({ id, type: 'reply' });
        if (request.type === 'ping') return;
        phone.leave();
        outlet.close(1000, 'BYE');
        return;
      }
      phone.request(request).then(
        (fields) => outlet.send({ id, type: 'reply', ...fields }),
        (error) => refuse(id, error),
      );
    } catch (error) {
      if (error instanceof InvalidPhoneMessage) refuse(error.id, error.refusal);
      else refuse(null, error);
    }
  };
}
