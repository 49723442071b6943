import { header, parseCSeq, type SipParseError, type SipRequest, type SipResponse } from '../../message/index.ts';
import { type Clock, systemClock } from '../clock.ts';
import type { SipTimers } from '../sip-timers.ts';
import { TransactionLayer } from '../transactions/layer.ts';
import type { Resolver } from '../transport/next-hop.ts';
import {
  type Network,
  type NetworkListener,
  type Remote,
  responseRemote,
  type TransportName,
} from '../transport/remote.ts';
import type { Application } from './application.ts';
import type { CoreContext } from './context.ts';
import { DialogTable } from './dialogs.ts';
import { type LocalAddress, newTag } from './outgoing.ts';
import { responseTo } from './responses.ts';
import { SessionTimers } from './session-timers.ts';
import { type Done, UserAgentClient } from './user-agent-client.ts';
import { UserAgentServer } from './user-agent-server.ts';

export interface SipCoreOptions {
  network: Network;
  local: LocalAddress;
  transports: readonly TransportName[];
  timers: SipTimers;
  resolve: Resolver;
  route: (method: string) => Application | null;
  clock?: Clock;
}

/** A message to send: the four forms of drachtio's `sip` command. */
export type SipCommand =
  | { type: 'response'; transactionId: string; message: SipResponse }
  | { type: 'in-dialog'; dialogId: string; message: SipRequest }
  | { type: 'cancel'; transactionId: string; message: SipRequest }
  | { type: 'new'; proxyUri: string | null; message: SipRequest };

/** The user agent: transactions, dialogs, and its client and server sides. Free of sockets and real time. */
export class SipCore implements NetworkListener {
  readonly #layer: TransactionLayer;
  readonly #dialogs = new DialogTable();
  readonly #client: UserAgentClient;
  readonly #server: UserAgentServer;

  constructor(options: SipCoreOptions) {
    const { network, timers, local, transports, resolve, route } = options;
    const clock = options.clock ?? systemClock;
    this.#layer = new TransactionLayer({
      network,
      clock,
      timers,
      onRequest: (incoming) => this.#server.receive(incoming),
      onAck: (request, source) => this.#server.receiveAck(request, source),
      onNotAcknowledged: (incoming) => this.#server.notAcknowledged(incoming),
      onServerTerminated: (incoming) => this.#server.terminated(incoming),
      isExpected: (request) => this.#server.isExpected(request),
      onOverload: (request, source) => this.#refuseStatelessly(request, source, 503, 'Service Unavailable'),
    });
    const context: CoreContext = {
      layer: this.#layer,
      dialogs: this.#dialogs,
      clock,
      timers,
      local,
      transports,
      resolve,
      sessionTimers: new SessionTimers({
        clock,
        endDialog: (dialog, reason) => this.#client.endDialog(dialog, reason),
        refresh: (dialog, seconds) => this.#client.refreshSession(dialog, seconds),
      }),
    };
    this.#client = new UserAgentClient(context);
    this.#server = new UserAgentServer({
      context,
      route,
      endDialog: (dialog, reason) => this.#client.endDialog(dialog, reason),
    });
  }

  onMessage(message: SipRequest | SipResponse, source: Remote): void {
    if (message.kind === 'response') this.#layer.receiveResponse(message, source);
    else if (isAddressable(message)) this.#layer.receiveRequest(message, source);
    else if (message.method !== 'ACK')
      this.#refuseStatelessly(message, source, 400, 'Bad Request - CSeq cannot be read');
  }

  isExpected(message: SipRequest | SipResponse): boolean {
    if (message.kind === 'response') return this.#layer.isAwaited(message);
    return isAddressable(message) && (this.#server.isExpected(message) || this.#layer.isRunning(message));
  }

  onUnreachable(remote: Remote): void {
    this.#layer.unreachable(remote);
    this.#client.unreachable(remote);
  }

  /** Handles a malformed request that can still be answered. */
  onBroken(error: SipParseError, source: Remote): void {
    if (!error.request) return;
    if (error.code === 'BAD_VERSION') this.#refuseStatelessly(error.request, source, 505, 'Version Not Supported');
    else this.#refuseStatelessly(error.request, source, 400, `Bad Request - ${error.message}`);
  }

  execute(application: Application, command: SipCommand, done: Done): void {
    switch (command.type) {
      case 'response':
        done(this.#server.respond(application, command.transactionId, command.message));
        break;
      case 'in-dialog':
        this.#client.sendInDialog(application, command.message, command.dialogId, done);
        break;
      case 'cancel':
        this.#client.cancel(application, command.transactionId, command.message, done);
        break;
      case 'new':
        this.#client.sendNew(application, command.message, command.proxyUri, done);
        break;
    }
  }

  /** Handles the loss of an application: ends its calls and rejects its pending requests. */
  abandon(application: Application): void {
    this.#server.abandon(application);
    this.#client.abandon(application);
  }

  stop(): void {
    this.#layer.stop();
  }

  dump(): unknown {
    return {
      transactions: this.#layer.dump(),
      dialogs: this.#dialogs.size,
      invitesSent: this.#client.inviteCount,
      requestsUnanswered: this.#server.pendingCount,
    };
  }

  #refuseStatelessly(request: SipRequest, source: Remote, statusCode: number, reasonPhrase: string): void {
    this.#layer.send(responseTo(request, statusCode, reasonPhrase, newTag()), responseRemote(request, source));
  }
}

/** Without a valid CSeq, retransmissions cannot be recognised. */
function isAddressable(request: SipRequest): boolean {
  try {
    parseCSeq(header(request, 'cseq') ?? '');
    return true;
  } catch {
    return false;
  }
}
