/** Path and query of a client that speaks over WebSocket from the start. */
export const socketIoPath = '/socket.io/?EIO=4&transport=websocket';
/** In which all clients are. */
export const socketIoRoom = 'floor';
/** That the publisher emits. */
export const socketIoPublishEvent = 'pub';
