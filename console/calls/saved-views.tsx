import { ActionIcon, Button, Group, Menu, Text, TextInput } from '@mantine/core';
import { useDisclosure, useLocalStorage } from '@mantine/hooks';
import { Bookmark, X } from 'lucide-react';
import type { UrlSearch } from '../app/url-search.ts';
import { currentWorkspaceId } from '../app/workspace.ts';
import { FormDialog } from '../parts/form-dialog.tsx';
import { viewsText } from '../text/calls.ts';
import { FILTER_NAMES } from './filters.ts';

interface View {
  name: string;
  search: UrlSearch;
}

interface SavedViewsProps {
  search: UrlSearch;
  onOpen: (search: UrlSearch) => void;
}

/** Named filters, kept in this browser per workspace. */
export function SavedViews({ search, onOpen }: SavedViewsProps) {
  const [views, setViews] = useLocalStorage<View[]>({
    key: `tandem.views.${currentWorkspaceId()}`,
    defaultValue: [],
    deserialize: readViews,
  });
  const [isNaming, naming] = useDisclosure(false);
  const save = async ({ name }: Record<string, string>) => {
    const view = { name: name!.trim(), search: filtersIn(search) };
    setViews((known) => [...known.filter((other) => other.name !== view.name), view]);
  };
  return (
    <>
      <Menu position="bottom-end" width={260}>
        <Menu.Target>
          <Button variant="default" leftSection={<Bookmark size={14} aria-hidden />}>
            {viewsText.views}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {views.length === 0 && <Menu.Label>{viewsText.none}</Menu.Label>}
          {views.map(({ name, search: filters }) => (
            <Group key={name} gap={4} wrap="nowrap">
              <Menu.Item onClick={() => onOpen(filters)}>{name}</Menu.Item>
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label={viewsText.remove(name)}
                onClick={() => setViews((known) => known.filter((view) => view.name !== name))}
              >
                <X size={14} />
              </ActionIcon>
            </Group>
          ))}
          <Menu.Divider />
          <Menu.Item onClick={naming.open}>{viewsText.save}</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <FormDialog
        title={viewsText.saveTitle}
        isOpen={isNaming}
        onClose={naming.close}
        submitLabel={viewsText.save}
        onSubmit={save}
      >
        <TextInput name="name" label={viewsText.name} required maxLength={60} data-autofocus pattern=".*\S.*" />
        <Text size="sm" c="dimmed">
          {viewsText.saveHint}
        </Text>
      </FormDialog>
    </>
  );
}

/** A complete set of filters: undefined clears those that a view lacks. */
function filtersIn(search: UrlSearch): UrlSearch {
  return Object.fromEntries(FILTER_NAMES.map((name) => [name, search[name]]));
}

/** Storage can contain anything, for example from another version. */
function readViews(text: string | undefined): View[] {
  try {
    const stored: unknown = JSON.parse(text ?? '[]');
    if (!Array.isArray(stored)) return [];
    return stored.flatMap((view) =>
      typeof view?.name === 'string' && typeof view.search === 'object' && view.search !== null
        ? [{ name: view.name, search: filtersIn(strings(view.search)) }]
        : [],
    );
  } catch {
    return [];
  }
}

function strings(search: Record<string, unknown>): UrlSearch {
  return Object.fromEntries(
    Object.entries(search).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  );
}
