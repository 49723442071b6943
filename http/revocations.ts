import { EventEmitter } from 'node:events';
import type { Caller, Principal } from './auth.ts';

export type Revoked =
  | { kind: 'api_key'; id: number }
  | { kind: 'session'; id: string }
  | { kind: 'member'; workspaceId: string; userId: number };

/**
 * Notifies open streams and sockets of credentials revoked in this process. Other processes notice at their next check:
 * see `abortWithCredentials`.
 */
export interface Revocations {
  publish(revoked: Revoked): void;
  watch(principal: Principal, onRevoked: () => void, signal: AbortSignal): void;
}

export function createRevocations(): Revocations {
  const emitter = new EventEmitter();
  emitter.setMaxListeners(0);

  return {
    publish(revoked) {
      emitter.emit(topicOf(revoked));
    },
    watch(principal, onRevoked, signal) {
      const topics = topicsOf(principal);
      for (const topic of topics) emitter.once(topic, onRevoked);
      const stop = () => {
        for (const topic of topics) emitter.off(topic, onRevoked);
      };
      signal.addEventListener('abort', stop, { once: true });
    },
  };
}

function topicsOf({ workspaceId, userId, ...caller }: Principal): string[] {
  return [topicOf({ kind: 'member', workspaceId, userId }), ...credentialTopics(caller)];
}

function credentialTopics({ apiKeyId, sessionId }: Pick<Caller, 'apiKeyId' | 'sessionId'>): string[] {
  if (apiKeyId !== null) return [topicOf({ kind: 'api_key', id: apiKeyId })];
  return sessionId === null ? [] : [topicOf({ kind: 'session', id: sessionId })];
}

function topicOf(revoked: Revoked): string {
  return revoked.kind === 'member'
    ? `member ${revoked.workspaceId} ${revoked.userId}`
    : `${revoked.kind} ${revoked.id}`;
}
