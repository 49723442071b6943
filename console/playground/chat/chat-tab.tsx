import { NumberInput, Select, Textarea } from '@mantine/core';
import { useState } from 'react';
import { chatText, playgroundText } from '../../text/playground.ts';
import { curlOf } from '../command.ts';
import { useDraft } from '../draft.ts';
import { useModels } from '../use-models.ts';
import { Workbench } from '../workbench.tsx';
import { type ChatSettings, completionRequestOf } from './completion.ts';
import { ConversationView } from './conversation-view.tsx';
import { messageOf, useConversation } from './use-conversation.ts';

const INITIAL: ChatSettings = { model: null, system: '', temperature: null, maxTokens: null };

export function ChatTab() {
  const [settings, setSettings] = useDraft('chat.settings', INITIAL);
  const [message, setMessage] = useState('');
  const models = useModels('chat');
  const { conversation, send, stop, clear } = useConversation(settings);
  const next = message.trim() === '' ? [] : [{ role: 'user' as const, content: message }];
  const body = completionRequestOf(settings, [...conversation.turns.map(messageOf), ...next]);
  return (
    <Workbench
      settings={<ChatFields settings={settings} models={models.ids} onChange={setSettings} />}
      service="llm"
      price={chatText.price}
      code={curlOf({ method: 'POST', path: '/v1/chat/completions', json: body, isStreamed: true }, location.origin)}
      codeTitle={playgroundText.command}
    >
      <ConversationView
        conversation={conversation}
        isModelMissing={models.isMissing}
        message={message}
        onMessage={setMessage}
        onSend={() => {
          setMessage('');
          void send(message).then((isSent) => isSent || setMessage((typed) => typed || message));
        }}
        onStop={stop}
        onClear={clear}
      />
    </Workbench>
  );
}

interface ChatFieldsProps {
  settings: ChatSettings;
  models: readonly string[];
  onChange: (settings: ChatSettings) => void;
}

function ChatFields({ settings, models, onChange }: ChatFieldsProps) {
  const set = (changes: Partial<ChatSettings>) => onChange({ ...settings, ...changes });
  return (
    <>
      <Select
        label={chatText.model}
        placeholder="svc-tiny"
        data={[...models]}
        value={settings.model}
        onChange={(model) => set({ model })}
        searchable
        clearable
        clearButtonProps={{ 'aria-label': playgroundText.clear }}
      />
      <Textarea
        label={chatText.system}
        description={chatText.systemHint}
        value={settings.system}
        onChange={(event) => set({ system: event.currentTarget.value })}
        autosize
        minRows={3}
        maxRows={10}
      />
      <NumberInput
        label={chatText.temperature}
        placeholder="0.7"
        min={0}
        max={2}
        step={0.1}
        value={settings.temperature ?? ''}
        onChange={(value) => set({ temperature: typeof value === 'number' ? value : null })}
      />
      <NumberInput
        label={chatText.maxTokens}
        placeholder="4096"
        min={1}
        max={131_072}
        allowDecimal={false}
        value={settings.maxTokens ?? ''}
        onChange={(value) => set({ maxTokens: typeof value === 'number' ? value : null })}
      />
    </>
  );
}
