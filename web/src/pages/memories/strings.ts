import { count, texts } from "../../i18n/index";

export const t = texts({
  en: {
    found: (n: number) => count(n, "memory", "memories"),
    search: "Search as you type",
    kind: "Kind",
    allKinds: "All kinds",
    state: "State",
    active: "Active",
    retired: "Retired",
    none: "No matching memory",
    noneNote: "Remove a word or a filter.",
    empty: "No memories yet",
    emptyNote:
      "Read your agents' sessions with nacre ingest, connect the agents with nacre init, or add a memory with nacre store.",
    clear: "Clear",
  },
  zh: {
    found: (n: number) => `${n} 条记忆`,
    search: "边输入边搜索",
    kind: "类型",
    allKinds: "所有类型",
    state: "状态",
    active: "有效",
    retired: "已停用",
    none: "没有符合条件的记忆",
    noneNote: "请减少关键词或筛选条件。",
    empty: "还没有任何记忆",
    emptyNote: "nacre ingest 读取您的代理的会话;nacre init 将 nacre 接入代理;nacre store 保存您告诉它的内容。",
    clear: "清除",
  },
});
