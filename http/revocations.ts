import { EventEmitter } from 'node:events';
import type { Role } from '../storage/queries/workspaces.ts';
import type { Caller, Principal } from './auth.ts';

export type Revoked =
  | { kind: 'api_key'; id: number }
  | { kind: 'session'; id: string }
  /** `role` is the new one; null if the member was removed. */
  | { kind: 'member'; workspaceId: string; userId: number; role: Role | null };

/**
 * Notifies open streams and sockets of credentials revoked in this process. Other processes notice at their next check:
 * see `abortWithCredentials`.
 */
export interface Revocations {
  publish(revoked: Revoked): void;
  /** Does not report a new role with which the connection `mayStay`. */
  watch(
    watched: { principal: Principal; mayStay: (role: Role) => boolean },
    onRevoked: () => void,
    signal: AbortSignal,
  ): void;
}

export function createRevocations(): Revocations {
  const emitter = new EventEmitter();
  emitter.setMaxListeners(0);

  return {
    publish(revoked) {
      emitter.emit(topicOf(revoked), revoked);
    },
    watch({ principal, mayStay }, onRevoked, signal) {
      const topics = topicsOf(principal);
      const listener = (revoked: Revoked) => {
        const newRole = revoked.kind === 'member' ? revoked.role : null;
        if (newRole === null || !mayStay(newRole)) onRevoked();
      };
      for (const topic of topics) emitter.on(topic, listener);
      const stop = () => {
        for (const topic of topics) emitter.off(topic, listener);
      };
      signal.addEventListener('abort', stop, { once: true });
    },
  };
}

function topicsOf({ workspaceId, userId, ...caller }: Principal): string[] {
  return [memberTopic({ workspaceId, userId }), ...credentialTopics(caller)];
}

function credentialTopics({ apiKeyId, sessionId }: Pick<Caller, 'apiKeyId' | 'sessionId'>): string[] {
  if (apiKeyId !== null) return [topicOf({ kind: 'api_key', id: apiKeyId })];
  return sessionId === null ? [] : [topicOf({ kind: 'session', id: sessionId })];
}

function topicOf(revoked: Revoked): string {
  return revoked.kind === 'member' ? memberTopic(revoked) : `${revoked.kind} ${revoked.id}`;
}

function memberTopic({ workspaceId, userId }: Pick<Principal, 'workspaceId' | 'userId'>): string {
  return `member ${workspaceId} ${userId}`;
}
