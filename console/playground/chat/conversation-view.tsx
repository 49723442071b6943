import { ActionIcon, Button, Group, Loader, Stack, Text, Textarea } from '@mantine/core';
import { MessagesSquare, Send, Square } from 'lucide-react';
import { useEffect, useRef } from 'react';
import { useMay } from '../../app/session.ts';
import { EmptyState } from '../../parts/states.tsx';
import { chatText, noModelText, playgroundText } from '../../text/playground.ts';
import { costOf } from '../facts.tsx';
import { NoModel, Problem } from '../problem.tsx';
import type { Conversation, Turn } from './use-conversation.ts';

interface ConversationViewProps {
  conversation: Conversation;
  isModelMissing: boolean;
  message: string;
  onMessage: (message: string) => void;
  onSend: () => void;
  onStop: () => void;
  onClear: () => void;
}

export function ConversationView({
  conversation,
  isModelMissing,
  message,
  onMessage,
  ...actions
}: ConversationViewProps) {
  const { turns, isAnswering, error } = conversation;
  return (
    <>
      {turns.length > 0 && <Turns turns={turns} isAnswering={isAnswering} onClear={actions.onClear} />}
      {error !== null && <Problem error={error} need={noModelText.chat} />}
      {turns.length === 0 && error === null && (isModelMissing ? <NoModel need={noModelText.chat} /> : <Nothing />)}
      <Composer message={message} onMessage={onMessage} isAnswering={isAnswering} {...actions} />
    </>
  );
}

function Nothing() {
  return (
    <EmptyState icon={MessagesSquare} title={chatText.emptyTitle}>
      {chatText.empty}
    </EmptyState>
  );
}

function Turns({ turns, isAnswering, onClear }: { turns: readonly Turn[]; isAnswering: boolean; onClear: () => void }) {
  const log = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: an answer makes it longer
  useEffect(() => {
    log.current?.scrollTo({ top: log.current.scrollHeight });
  }, [turns]);
  return (
    <>
      <Group justify="flex-end" px="md" py={4} className="output-bar">
        <Button variant="subtle" size="compact-xs" onClick={onClear} disabled={isAnswering}>
          {playgroundText.clear}
        </Button>
      </Group>
      <Stack
        ref={log}
        gap="md"
        p="md"
        className="output-scroll"
        role="log"
        aria-label={chatText.conversation}
        tabIndex={0}
      >
        {turns.map((turn, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: turns are never reordered
          <TurnView key={index} turn={turn} isWriting={isAnswering && index === turns.length - 1} />
        ))}
      </Stack>
    </>
  );
}

function TurnView({
  turn: { role, content, thoughts, end, isStopped },
  isWriting,
}: {
  turn: Turn;
  isWriting: boolean;
}) {
  return (
    <div>
      <Text size="xs" fw={600} c="dimmed">
        {role === 'user' ? chatText.you : chatText.assistant}
      </Text>
      {thoughts !== '' && (
        <details>
          <Text component="summary" size="xs" c="dimmed">
            {chatText.thoughts}
          </Text>
          <Text size="sm" c="dimmed" className="chat-text">
            {thoughts}
          </Text>
        </details>
      )}
      <Text size="sm" className="chat-text">
        {content}
      </Text>
      {isWriting && content === '' && (
        <Loader size="xs" type="dots" role="status" aria-label={playgroundText.running} />
      )}
      {isStopped && (
        <Text size="xs" c="dimmed">
          {playgroundText.aborted}
        </Text>
      )}
      {end && (
        <Text size="xs" c="dimmed" className="tabular">
          {[
            end.model,
            chatText.tokens(end.promptTokens, end.completionTokens),
            playgroundText.ms(end.tookMs),
            ...(end.usd === null ? [] : [costOf(end.usd)]),
            ...(end.finishReason === 'length' ? [chatText.cutOff] : []),
          ].join(' · ')}
        </Text>
      )}
    </div>
  );
}

type ComposerProps = Pick<ConversationViewProps, 'message' | 'onMessage' | 'onSend' | 'onStop'> & {
  isAnswering: boolean;
};

function Composer({ message, onMessage, isAnswering, onSend, onStop }: ComposerProps) {
  const { write } = useMay();
  const canSend = write && !isAnswering && message.trim() !== '';
  return (
    <Group p="md" gap="xs" wrap="nowrap" align="flex-end" className="composer">
      <Textarea
        flex={1}
        aria-label={chatText.message}
        placeholder={chatText.placeholder}
        value={message}
        onChange={(event) => onMessage(event.currentTarget.value)}
        onKeyDown={(event) => {
          // Enter also ends an IME composition.
          if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
          event.preventDefault();
          if (canSend) onSend();
        }}
        autosize
        minRows={1}
        maxRows={8}
        disabled={!write}
      />
      {isAnswering ? (
        <ActionIcon size={36} color="red" onClick={onStop} aria-label={playgroundText.stop}>
          <Square size={16} aria-hidden />
        </ActionIcon>
      ) : (
        <ActionIcon size={36} onClick={onSend} disabled={!canSend} aria-label={chatText.send}>
          <Send size={16} aria-hidden />
        </ActionIcon>
      )}
    </Group>
  );
}
