import { randomBytes } from 'node:crypto';
import { isOwnAddress } from '../runtime/network-address.ts';
import { startEmbeddedSipServer } from './embedded/embedded-sip-server.ts';
import { createDrachtioGateway, type GatewayLogger } from './sip-gateway.drachtio.ts';
import type { SipGateway } from './sip-gateway.ts';
import { readTlsFiles, type SipTlsSettings } from './tls-files.ts';
import { callMessages } from './trace/call-messages.ts';
import { type CallTracer, createCallTracer } from './trace/call-tracer.ts';
import { readDrachtioMessage } from './trace/drachtio-messages.ts';
import type { CallMessage } from './trace/wire-message.ts';

/** Subset of the settings in `settings.ts`. */
export interface SipSettings extends SipTlsSettings {
  /** Null: the embedded SIP server. */
  readonly drachtioHost: string | null;
  readonly drachtioPort: number;
  /** Required with `drachtioHost`. */
  readonly drachtioSecret: string | null;
  readonly sipHost: string;
  readonly sipPort: number;
  readonly sipTransports: readonly ('udp' | 'tcp')[];
  /** Per source. */
  readonly sipMessagesPerSecond: number;
  /** Addresses and networks. */
  readonly sipTrustedProxies: readonly string[];
}

export interface OpenSipOptions {
  logger: GatewayLogger;
  /** The embedded SIP server ended unexpectedly. */
  onLost: (reason: string) => void;
  /**
   * Receives each SIP message of a call, in order, with its secrets masked. With a drachtio-server, only those that it
   * shows. Must not throw. Default: messages are not traced.
   */
  onMessage?: (message: CallMessage) => void;
}

export interface Sip extends AsyncDisposable {
  readonly gateway: SipGateway;
  /** SIP address of the embedded server; null with a drachtio-server. */
  readonly address: { host: string; port: number } | null;
}

/**
 * Connects to the drachtio-server at `drachtioHost`, or starts the embedded SIP server and connects to that.
 * @throws Error with the `code` of a failed bind, such as `EADDRINUSE`; or naming a TLS setting whose file is unusable
 * @throws SipError `server.secret_refused`
 */
export async function openSip(settings: SipSettings, { logger, onLost, onMessage }: OpenSipOptions): Promise<Sip> {
  await using opening = new AsyncDisposableStack();
  const tracer = onMessage === undefined ? null : createCallTracer({ onMessage });
  const { control, address } = settings.drachtioHost === null ? await startServer() : externalServer(settings);
  // An external server may start after us; until then placements answer C2C_NOT_CONFIGURED.
  const connectInBackground = settings.drachtioHost !== null;
  const outlivesUs = settings.drachtioHost !== null;
  const gateway = await createDrachtioGateway({
    ...{ ...control, connectInBackground, outlivesUs, trustedProxies: settings.sipTrustedProxies, logger },
    ...(tracer && { tracer }),
    // The embedded server reports its own messages, which are more complete.
    ...(tracer && settings.drachtioHost !== null && { onFrame: frameReader(tracer) }),
  });
  opening.defer(() => gateway.close());
  const opened = opening.move();
  return { gateway, address, [Symbol.asyncDispose]: () => opened.disposeAsync() };

  async function startServer() {
    const { sipHost, sipPort, sipTransports: transports, sipMessagesPerSecond: messagesPerSecond } = settings;
    const secret = randomBytes(24).toString('base64url');
    const tls = await readTlsFiles(settings);
    const server = await startEmbeddedSipServer({
      ...(isOwnAddress(sipHost) ? { sipHost } : { sipHost: '0.0.0.0', advertisedHost: sipHost }),
      ...{ sipPort, transports, tls, secret, messagesPerSecond },
      ...(tracer && { onMessages: (messages) => tracer.take(messages) }),
      onFault: (error) => logger.error({ err: error }, 'SIP server dropped a message that it failed to handle'),
      onUntrusted: (host, reason) => logger.warn({ host, reason }, 'TLS connection to a SIP peer failed'),
      onLimited: ({ total, sources }) =>
        logger.warn({ dropped: total, sources }, 'SIP messages beyond SIP_MESSAGES_PER_SECOND were dropped'),
      onExit: (error) => onLost(`The embedded SIP server ended: ${error?.message ?? 'no reason known'}`),
    });
    opening.defer(() => server.close());
    return {
      control: { host: server.controlHost, port: server.controlPort, secret },
      address: { host: sipHost, port: server.sipPort },
    };
  }
}

function externalServer({ drachtioHost, drachtioPort, drachtioSecret }: SipSettings) {
  return { control: { host: drachtioHost!, port: drachtioPort, secret: drachtioSecret! }, address: null };
}

/** Extracts the messages of calls from the frames of a drachtio-server. */
function frameReader(tracer: CallTracer): (frame: string) => void {
  const pick = callMessages();
  return (frame) => {
    const seen = readDrachtioMessage(frame, Date.now());
    const message = seen && pick(seen);
    if (message) tracer.take([message]);
  };
}
