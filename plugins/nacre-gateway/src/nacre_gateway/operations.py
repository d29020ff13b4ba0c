"""The operations of the gateway."""

from __future__ import annotations

from nacre.base.request import Nothing
from nacre.serve.operation import Operation
from nacre.values.gateway import ChatSession, Pairing
from nacre_gateway import conversation, engine

OPERATIONS = (
    Operation("gateway-status", engine.gateway_status, Nothing, engine.GatewayState),
    Operation("gateway-sessions", engine.list_chats, conversation.ChatsRequest, list[ChatSession]),
    Operation("gateway-session", engine.show_chat, conversation.ChatRequest, engine.Chat),
    Operation(
        "gateway-end",
        engine.end_chat,
        conversation.EndChatRequest,
        ChatSession,
        writes=True,
        owners=True,
    ),
    Operation(
        "gateway-pairings",
        engine.list_pairings,
        Nothing,
        list[Pairing],
        command="gateway pair",
        owners=True,
    ),
    Operation(
        "gateway-pair",
        engine.pair,
        conversation.PairRequest,
        engine.Paired,
        writes=True,
        owners=True,
    ),
    Operation(
        "gateway-unpair",
        engine.unpair,
        conversation.UnpairRequest,
        bool,
        writes=True,
        owners=True,
    ),
)
