import type { ThreadFailure } from '../../runtime/thread-protocol.ts';
import type { WireMessage } from '../trace/wire-message.ts';
import type { SipServerOptions } from './sip-server.ts';
import type { DroppedMessages } from './transport/source-limits.ts';

export interface SipServerThread {
  data: SipServerOptions & { isTraced: boolean };
  /** `failure`: the sockets could not be opened. */
  ready: { controlPort: number; sipPort: number; tlsPort: number | null } | { failure: ThreadFailure };
  calls: object;
  /**
   * `fault`: one message made the server throw. `messages`: those of calls, if `isTraced`. `untrusted`: a TLS peer did
   * not prove its name. `limited`: messages dropped by a limit.
   */
  reports:
    | { type: 'fault'; error: Error }
    | { type: 'messages'; messages: WireMessage[] }
    | { type: 'untrusted'; name: string; reason: string }
    | { type: 'limited'; dropped: DroppedMessages };
  notices: never;
}
