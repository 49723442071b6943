import type { ThreadFailure } from '../../runtime/thread-protocol.ts';
import type { SipServerOptions } from './sip-server.ts';

export interface SipServerThread {
  data: SipServerOptions;
  /** `failure`: the sockets could not be opened. */
  ready: { controlPort: number; sipPort: number } | { failure: ThreadFailure };
  calls: object;
  /** A fault: one message made the server throw. */
  reports: Error;
  notices: never;
}
